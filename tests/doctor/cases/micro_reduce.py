# SPDX-License-Identifier: Apache-2.0
"""Sick: ranks add up gradients after each of four passes. Cured: after the last one. Healthy: one pass per step."""

import contextlib

from torch.nn.parallel import DistributedDataParallel

import parts


def work(rank):
    model = DistributedDataParallel(parts.make_model())
    optimizer = parts.make_optimizer(model)
    passes = 1 if parts.HEALTHY else 4
    for inputs, targets in parts.batches(parts.make_loader(parts.Samples())):
        optimizer.zero_grad()
        for i, (some, wanted) in enumerate(zip(inputs.chunk(passes), targets.chunk(passes))):
            last = i == passes - 1
            with contextlib.nullcontext() if last or parts.SICK else model.no_sync():
                (parts.make_loss(model(some), wanted) / passes).backward()
        optimizer.step()


if __name__ == "__main__":
    parts.on_two_ranks(work)
