# SPDX-License-Identifier: Apache-2.0
"""Networks, samples and a loop that the cases share. Each takes 10 to 60 ms per step on two cores."""

import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional

VARIANT = sys.argv[1] if len(sys.argv) > 1 else "sick"  # sick, cured or healthy
MODEL = sys.argv[2] if len(sys.argv) > 2 else "mlp"  # cnn, gpt or mlp
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 60
SICK, CURED, HEALTHY = VARIANT == "sick", VARIANT == "cured", VARIANT == "healthy"
BATCH = 32 if MODEL == "gpt" else 64

torch.manual_seed(0)


class Gpt(nn.Module):
    def __init__(self, words=256, width=128, length=64):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        block = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens):
        return self.head(self.blocks(self.words(tokens) + self.places, mask=self.mask))


def make_model():
    if MODEL == "cnn":
        return nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(64 * 8 * 8, 10),
        )  # fmt: skip
    if MODEL == "gpt":
        return Gpt()
    return nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(),
                         nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))


class Wide(nn.Module):
    """The network, and a large table of which each step uses little."""

    def __init__(self, rows):
        super().__init__()
        self.inner, self.table = make_model(), nn.Parameter(torch.zeros(rows, 256))

    def forward(self, inputs):
        return self.inner(inputs) + self.table[0].sum()


def make_sample(index):
    """The same for each index: input and target."""
    generator = torch.Generator().manual_seed(index)
    if MODEL == "gpt":
        tokens = torch.randint(256, (65,), generator=generator)
        return tokens[:-1], tokens[1:]
    shape = (3, 32, 32) if MODEL == "cnn" else (256,)
    return torch.randn(shape, generator=generator), index % 10


def make_loss(outputs, targets):
    if MODEL == "gpt":
        return functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())
    return functional.cross_entropy(outputs, targets)


class Samples(torch.utils.data.Dataset):
    """Ready samples in memory; a case overrides get() to make them expensive."""

    def __init__(self, count=BATCH * 40):
        samples = [make_sample(i) for i in range(min(count, 256))]
        self.count = count
        self.inputs = torch.stack([each[0] for each in samples])
        self.targets = torch.stack([torch.as_tensor(each[1]) for each in samples])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.inputs[index % len(self.inputs)], self.targets[index % len(self.inputs)]


def make_loader(dataset, **options):
    return torch.utils.data.DataLoader(dataset, batch_size=BATCH, **options)


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def batches(loader):
    """Batches for STEPS steps, over as many epochs as that takes. Says how fast they went, after the first ten."""
    step, start = 0, 0.0
    while step < STEPS:
        for batch in loader:
            start = time.perf_counter() if step == 10 else start
            yield batch
            step += 1
            if step == STEPS:
                print(f"speed {(STEPS - 10) / (time.perf_counter() - start):.3f} steps/s", file=sys.stderr)
                return


def train(model, loader, optimizer, each_step=lambda step, loss: None):
    for step, (inputs, targets) in enumerate(batches(loader)):
        optimizer.zero_grad()
        loss = make_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        each_step(step, loss)
    print(f"loss {loss.item():.6f}")


def out_folder():
    folder = os.environ.get("CASE_OUT", "/tmp")
    os.makedirs(folder, exist_ok=True)
    return folder


def on_two_ranks(work):
    """Calls work(rank) in two processes of one group, which this script starts."""
    store = os.path.join(out_folder(), f"store-{os.getpid()}")
    torch.multiprocessing.start_processes(_rank, (work, store), nprocs=2, start_method="fork")


def _rank(number, work, store):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    work(number)
    torch.distributed.destroy_process_group()
