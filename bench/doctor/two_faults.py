# SPDX-License-Identifier: Apache-2.0
"""A training with the faults that it is told to have, for pairs.py:     two_faults.py FAULT[,FAULT] MODEL STEPS

Each fault is one of tests/doctor/cases, small enough to stand beside another.
"""

import gc
import os
import pathlib
import sys

FAULTS = set(sys.argv[1].split(",")) - {"none"}
sys.argv[1] = "sick"  # what the shared parts read
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "doctor" / "cases"))

import numpy  # noqa: E402
import parts  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.tensorboard import SummaryWriter  # noqa: E402

TABLE = numpy.random.default_rng(0).standard_normal((400, 1000))
OBJECTS = [{"name": str(i)} for i in range(100_000 if "gc" in FAULTS else 0)]


class Samples(parts.Samples):
    def __getitem__(self, index):
        inputs, targets = super().__getitem__(index)
        if "samples" in FAULTS:
            noise = torch.randn(150, 150)
            inputs = inputs + (noise @ noise).mean() * 0
        return inputs, targets


class Deep(nn.Module):
    """The network, and many small layers and a large table beside it."""

    def __init__(self):
        super().__init__()
        self.inner = parts.make_model()
        self.side = nn.Sequential(*(each for _ in range(20) for each in (nn.Linear(64, 64), nn.LayerNorm(64))))
        self.table = nn.Parameter(torch.zeros(20_000, 256))

    def forward(self, inputs):
        return self.inner(inputs) + 0 * self.side(inputs.flatten(1)[:, :64].float()).sum() + self.table[0].sum()


def rank(loss):
    return float(numpy.argsort(TABLE * loss, axis=1).mean())


def main():
    torch.autograd.set_detect_anomaly("anomaly" in FAULTS)
    if "threads" in FAULTS:
        torch.set_num_threads(4 * len(os.sched_getaffinity(0)))
    model = Deep()
    kinds = {"fused": False, "foreach": False} if "optimizer" in FAULTS else {"fused": True}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, **kinds)
    writer = SummaryWriter(parts.out_folder())
    for step, (inputs, targets) in enumerate(parts.batches(parts.make_loader(Samples()))):
        optimizer.zero_grad(set_to_none="zero_grad" not in FAULTS)
        loss = parts.make_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if "checkpoint" in FAULTS and step % 4 == 1:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, parts.out_folder() + "/checkpoint.pt")
        if "numpy" in FAULTS:
            rank(loss.item())
        if "histograms" in FAULTS:
            writer.add_histogram("weights", next(model.inner.parameters()).detach(), step)
        if "gc" in FAULTS:
            gc.collect()
    writer.close()


if __name__ == "__main__":
    main()
