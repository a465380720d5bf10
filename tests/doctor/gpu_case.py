#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training on a GPU with one planted fault; "none" is its cured twin. bench/doctor/gpu.py runs it under the doctor.

    gpu_case.py FAULT MODEL STEPS      MODEL: cnn (a ResNet of 8 bottlenecks), gpt, mlp, cnn-small, gpt-small

The GPU limits cnn and gpt; mlp and the two with small batches are limited by how fast the host launches kernels.

Prints the speed of the last steps, in samples per second. Works on a CPU too, with tiny sizes and without meaning. With
STOKER_CASE_LOCK=FILE it waits, after its imports, until no other case has that lock: then the next one may start early.
"""
import fcntl
import os
import sys
import time

FAULT, MODEL, STEPS = sys.argv[1], sys.argv[2].removesuffix("-small"), int(sys.argv[3])
SMALL = sys.argv[2].endswith("-small")
if FAULT == "launch_blocking":
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"

import torch
from torch import nn
from torch.nn import functional

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TINY = DEVICE.type == "cpu"
WARM = 40  # steps before the speed is measured: those in which the doctor looks closely
BATCH = 2 if TINY else {"cnn": 64 if SMALL else 384, "gpt": 8 if SMALL else 32, "mlp": 1024}[MODEL]
SIDE = 32 if TINY else 128
TOKENS, WIDTH, LAYERS, VOCABULARY = (16, 32, 2, 100) if TINY else (512, 768, 12, 8192)


class Block(nn.Module):
    """A bottleneck of ResNet-50."""

    def __init__(self, inputs, width, stride, bias):
        super().__init__()
        layers = []
        for entered, left, kernel, step in ((inputs, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)):
            layers += [nn.Conv2d(entered, left, kernel, step, kernel // 2, bias=bias), nn.BatchNorm2d(left), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers[:-1])
        self.way = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            self.way = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=bias), nn.BatchNorm2d(4 * width))

    def forward(self, image):
        return functional.relu(self.body(image) + self.way(image), inplace=True)


def resnet(bias):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=bias), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, blocks in enumerate((1, 1) if TINY else (2, 2, 2, 2)):
        for i in range(blocks):
            layers.append(Block(inputs, 64 << stage, 2 if stage > 0 and i == 0 else 1, bias))
            inputs = 4 * (64 << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 100))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.qkv(self.first(x)).view(batch, tokens, 3, width // 16 if TINY else 12, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind(0)
        if FAULT == "plain_attention":
            mask = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
            scores = (q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5
            mixed = scores.masked_fill(mask, float("-inf")).softmax(-1) @ v
        elif FAULT == "mask_on_cpu":
            mask = torch.ones(tokens, tokens, dtype=torch.bool).tril().to(x.device)
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.second(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, text):
        x = self.tokens(text) + self.places(torch.arange(text.shape[1], device=text.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).flatten(0, 1)


def make_model():
    if MODEL == "cnn":
        return resnet(bias=FAULT == "conv_bias")
    if MODEL == "gpt":
        return Gpt()
    width = 64 if TINY else 1024
    return nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(width, width), nn.ReLU())], nn.Linear(width, 100))


class Samples(torch.utils.data.Dataset):
    """Whole batches that are there already, or with the fault "slow_samples" such that take a core 2 ms per sample."""

    def __init__(self):
        torch.manual_seed(1)
        if MODEL == "cnn":
            self.ready = [(torch.rand(BATCH, 3, SIDE, SIDE), torch.randint(100, (BATCH,))) for _ in range(4)]
        elif MODEL == "gpt":
            self.ready = [(text[:, :-1].contiguous(), text[:, 1:].flatten()) for text in
                          (torch.randint(VOCABULARY, (BATCH, TOKENS + 1)) for _ in range(4))]
        else:
            width = 64 if TINY else 1024
            self.ready = [(torch.rand(BATCH, width), torch.randint(100, (BATCH,))) for _ in range(4)]

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if FAULT in ("slow_samples", "slow_samples_8"):
            end = time.thread_time() + (0.001 if TINY else 0.0005 * BATCH)
            while time.thread_time() < end:
                str(index)
        return self.ready[index % 4]


def main():
    torch.set_float32_matmul_precision("highest" if FAULT == "fp32" else "high")
    torch.backends.cudnn.allow_tf32 = FAULT != "fp32"
    torch.backends.cudnn.benchmark = FAULT != "no_benchmark"
    torch.autograd.set_detect_anomaly(FAULT == "anomaly")
    half = FAULT not in ("fp32", "no_amp")
    last = MODEL == "cnn" and FAULT != "nchw"
    model = make_model().to(DEVICE)
    if last:
        model = model.to(memory_format=torch.channels_last)
    ways = {"loop_optimizer": {"foreach": False}, "foreach_optimizer": {"foreach": True}}.get(FAULT, {"fused": not TINY})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **ways)
    pinned = FAULT != "pageable" and not TINY
    workers = {"slow_samples_8": 12, "slow_samples": 2}.get(FAULT, 4)
    loader = torch.utils.data.DataLoader(Samples(), batch_size=None, num_workers=workers, pin_memory=pinned)
    averages = [each.detach().clone() for each in model.parameters()]
    history, shown, start = [], 0.0, None
    total = torch.zeros((), device=DEVICE)
    for step, (inputs, targets) in enumerate(loader):
        if step == min(WARM, STEPS // 2):
            synchronize()
            start = time.perf_counter(), step
        inputs = inputs.to(DEVICE, non_blocking=FAULT not in ("pageable", "blocking_copies"))
        targets = targets.to(DEVICE, non_blocking=FAULT not in ("pageable", "blocking_copies"))
        if FAULT == "new_shapes" and MODEL == "cnn":
            inputs = functional.interpolate(inputs, size=SIDE - (16 if TINY else 32) + 2 * (7 * step % 8))
        if last:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=half):
            output = model(inputs)
            loss = functional.cross_entropy(output.float(), targets)
        loss.backward()
        if FAULT == "clip_item":
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
            if norm.item() > 1e6:
                print("large gradient")
        optimizer.step()
        optimizer.zero_grad(set_to_none=FAULT != "zero_grad")
        if FAULT == "item":
            shown += loss.item()
            shown += (output.argmax(1) == targets).sum().item()
        elif FAULT == "items":
            shown += sum(value.item() for value in output[0, :100].float())
        elif FAULT == "print":
            print(f"step {step} loss {loss:.4f}", file=sys.stderr)
        elif FAULT == "synchronize":
            synchronize()
        elif FAULT == "kept_history":
            total = total + loss
        elif FAULT == "predictions":
            history.append(output.detach().cpu())
        elif FAULT == "empty_cache":
            torch.cuda.empty_cache()
        elif FAULT == "ema":
            with torch.no_grad():
                for average, parameter in zip(averages, model.parameters()):
                    average.mul_(0.999).add_(parameter.detach(), alpha=0.001)
        else:
            total += loss.detach()
    synchronize()
    if start is not None:
        print(f"speed {BATCH * (STEPS - start[1]) / (time.perf_counter() - start[0]):.2f}", file=sys.stderr)
    print(f"loss {float(total) + shown:.4f}")


def synchronize():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    with open(os.environ.get("STOKER_CASE_LOCK", os.devnull), "w") as lock:
        if lock.name != os.devnull:
            fcntl.flock(lock, fcntl.LOCK_EX)
        main()
