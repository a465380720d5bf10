# SPDX-License-Identifier: Apache-2.0
"""Sick: rank 1 does more than its share in each step. Cured: both do the same. Healthy: more, but rarely."""

import time

from torch.nn.parallel import DistributedDataParallel

import parts


def work(rank):
    model = DistributedDataParallel(parts.make_model())
    optimizer = parts.make_optimizer(model)
    for step, (inputs, targets) in enumerate(parts.batches(parts.make_loader(parts.Samples()))):
        optimizer.zero_grad()
        if rank == 1 and (parts.SICK or (parts.HEALTHY and step % 30 == 29)):
            end = time.perf_counter() + 0.04
            while time.perf_counter() < end:
                pass
        parts.make_loss(model(inputs), targets).backward()
        optimizer.step()


if __name__ == "__main__":
    parts.on_two_ranks(work)
