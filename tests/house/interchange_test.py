# SPDX-License-Identifier: Apache-2.0
"""Weights to torchvision and transformers and back: the same files give the same figures."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from packages import SKIPPED
from own_cache import OUTSIDE
HOUSE = pathlib.Path(__file__).resolve().parents[2]
_torch = subprocess.run([HOUSE / "tools" / "find_torch"], capture_output=True, text=True, env=OUTSIDE)
if _torch.returncode != 0:
    print("SKIPPED: Python has no torch of the pinned version")
    sys.exit(SKIPPED)
sys.path.append(str(pathlib.Path(_torch.stdout.strip()).parent))  # after the pinned packages
os.environ["HF_HUB_OFFLINE"] = "1"
import numpy
import torch
import torchvision
import transformers
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

STOKER = pathlib.Path(os.environ["STOKER_BIN"]) / "stoker"
CONTEXT = 24


def stoker(folder, *words):
    done = subprocess.run([STOKER, *map(str, words)], cwd=folder, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


class Gpt2(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        text = "".join(each.read_text(encoding="utf-8") for each in sorted((HOUSE / "docs").glob("*.md")))[:30000]
        self.text = text.encode()
        (self.root / "text.txt").write_bytes(self.text)

    def train(self, run, *words):
        stoker(self.root, "train", "text.txt", f"run={run}", "tokenizer=bytes", f"context={CONTEXT}", "layers=2", "heads=2",
               "width=32", "precision=fp32", "sample_tokens=0", "--quiet", *words)

    def loss_of(self, model):
        """Mean loss over the last tenth in windows that do not overlap, like the task's validation."""
        model.eval()
        held_out = self.text[len(self.text) - int(0.1 * len(self.text)):]
        while held_out[0] & 0xC0 == 0x80:
            held_out = self.text[len(self.text) - len(held_out) - 1:]
        ids = torch.tensor(list(held_out))
        nats = 0.0
        with torch.no_grad():
            for first in range(0, len(ids) - 1, CONTEXT):
                seen, wanted = ids[first:first + CONTEXT], ids[first + 1:first + CONTEXT + 1]
                logits = model(seen[:len(wanted)].unsqueeze(0)).logits[0]
                nats += torch.nn.functional.cross_entropy(logits.double(), wanted, reduction="sum").item()
        return nats / (len(ids) - 1)

    def our_loss(self, run):
        return json.loads(stoker(self.root, "eval", f"runs/{run}", "--json"))["metrics"]["loss"]

    def test_transformers_reads_ours(self):
        self.train("ours", "steps=60", "lr=0.01")
        stoker(self.root, "export", "runs/ours", "exported/")
        model, report = transformers.GPT2LMHeadModel.from_pretrained(self.root / "exported", output_loading_info=True)
        for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            self.assertFalse(report[problem], problem)
        ours = self.our_loss("ours")
        self.assertLess(ours, 4)  # trained; guessing gives ln 256 = 5.5
        self.assertAlmostEqual(self.loss_of(model), ours, delta=1e-5 * ours)
        written = stoker(self.root, "generate", "runs/ours", "--prompt", "The ", "--tokens", 20, "--temperature", 0)
        theirs = model.generate(torch.tensor([list(b"The ")]), attention_mask=torch.ones(1, 4), max_new_tokens=20,
                                do_sample=False, pad_token_id=0)
        self.assertEqual(written, bytes(theirs[0].tolist()).decode(errors="replace") + "\n")

    def test_ours_reads_transformers(self):
        torch.manual_seed(3)
        config = transformers.GPT2Config(vocab_size=256, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=2,
                                         bos_token_id=None, eos_token_id=None)
        model = transformers.GPT2LMHeadModel(config)
        with torch.no_grad():
            for parameter in model.parameters():  # large enough that every tensor matters
                parameter.add_(0.3 * torch.randn_like(parameter))
        model.save_pretrained(self.root / "theirs")
        names = load_file(self.root / "theirs" / "model.safetensors").keys()
        self.assertIn("transformer.h.1.attn.c_attn.weight", names)
        self.train("theirs", "weights=theirs/model.safetensors", "steps=1", "lr=1e-12")
        loss = self.loss_of(model)
        self.assertGreater(loss, 6)  # worse than guessing, so these weights were loaded
        self.assertAlmostEqual(self.our_loss("theirs"), loss, delta=1e-5 * loss)


class ResNet(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        random = numpy.random.default_rng(1)
        for name, tint in (("dark", 60), ("light", 190)):
            (self.root / "images" / name).mkdir(parents=True)
            for i in range(8):
                pixels = numpy.clip(random.normal(tint, 40, (40, 40, 3)), 0, 255).astype(numpy.uint8)
                Image.fromarray(pixels).save(self.root / "images" / name / f"{i}.png")
        self.images = sorted((self.root / "images").rglob("*.png"))

    def train(self, run, name, *words):
        stoker(self.root, "train", "images", f"run={run}", f"model={name}", "image_size=32", "val=0", "batch=8",
               "precision=fp32", "--quiet", *words)

    def compare(self, model, run, metadata):
        """Probabilities of torchvision's model and of `stoker predict`."""
        model.eval()
        how = json.loads(metadata["stoker.preprocessing"])
        rows = []
        for file in self.images:
            image = Image.open(file).convert("RGB").resize((how["resize"],) * 2, Image.Resampling.BILINEAR)
            edge = (how["resize"] - how["image_size"]) // 2
            image = image.crop((edge, edge, edge + how["image_size"], edge + how["image_size"]))
            pixels = torch.tensor(numpy.array(image)).permute(2, 0, 1).float()
            mean, std = (torch.tensor(how[key]).view(3, 1, 1) for key in ("mean", "std"))
            rows.append((pixels / 255 - mean) / std if max(how["mean"]) <= 1 else (pixels - mean) / std)
        with torch.no_grad():
            theirs = model(torch.stack(rows)).softmax(1)
        said = stoker(self.root, "predict", f"runs/{run}", *self.images, "--format", "json").splitlines()
        classes = json.loads(metadata["stoker.classes"])
        for line, expected in zip(said, theirs, strict=True):
            for guess in json.loads(line)["guesses"]:
                self.assertAlmostEqual(guess["probability"], expected[classes.index(guess["label"])].item(), delta=1e-4)
        self.assertGreater(theirs[:, 0].std(), 1e-3)  # the output differs between images

    def both_ways(self, name):
        self.train("ours", name, "steps=4", "lr=0.001")  # at a larger lr a ResNet-50 gives the same output for every image
        stoker(self.root, "export", "runs/ours", "ours.safetensors")
        with safe_open(self.root / "ours.safetensors", "pt") as file:
            metadata = file.metadata()
        model = getattr(torchvision.models, name)(num_classes=2)
        # num_batches_tracked, which only momentum=None would use.
        counts = {name: value for name, value in model.state_dict().items() if name.endswith("num_batches_tracked")}
        model.load_state_dict(load_file(self.root / "ours.safetensors") | counts, strict=True)
        self.compare(model, "ours", metadata)

        torch.manual_seed(2)
        theirs = getattr(torchvision.models, name)(num_classes=2)
        for module in theirs.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 2)
        save_file(theirs.state_dict(), self.root / "theirs.safetensors")
        self.train("theirs", name, "weights=theirs.safetensors", "freeze=5", "steps=1", "lr=1e-12", "ema=0")
        self.compare(theirs, "theirs", metadata)

    def test_resnet18_both_ways(self):
        self.both_ways("resnet18")

    def test_resnet34_both_ways(self):
        self.both_ways("resnet34")

    def test_resnet50_both_ways(self):
        self.both_ways("resnet50")


if __name__ == "__main__":
    unittest.main()
