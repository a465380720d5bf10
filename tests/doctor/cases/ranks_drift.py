# SPDX-License-Identifier: Apache-2.0
"""Sick: ranks call the network inside of DistributedDataParallel. Cured: the wrapper. Healthy: inside in evaluation."""

import torch
from torch.nn.parallel import DistributedDataParallel

import parts


def work(rank):
    model = DistributedDataParallel(parts.make_model())
    optimizer = parts.make_optimizer(model)
    for step, (inputs, targets) in enumerate(parts.batches(parts.make_loader(parts.Samples()))):
        optimizer.zero_grad()
        mine = slice(rank, None, 2)
        parts.make_loss((model.module if parts.SICK else model)(inputs[mine]), targets[mine]).backward()
        optimizer.step()
        if parts.HEALTHY and step % 20 == 19:
            with torch.no_grad():
                model.module(inputs)


if __name__ == "__main__":
    parts.on_two_ranks(work)
