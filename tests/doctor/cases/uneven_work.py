# SPDX-License-Identifier: Apache-2.0
"""Sick: ranks get batches of unequal size, in turns. Cured: equal ones. Healthy: sizes that differ by little."""

from torch.nn.parallel import DistributedDataParallel

import parts


def work(rank):
    model = DistributedDataParallel(parts.make_model())
    optimizer = parts.make_optimizer(model)
    part = {"sick": 8, "cured": 2, "healthy": 2.05}[parts.VARIANT]
    for step, (inputs, targets) in enumerate(parts.batches(parts.make_loader(parts.Samples()))):
        optimizer.zero_grad()
        few = int(len(inputs) / part)
        mine = slice(few) if step % 2 == rank else slice(few, None)
        parts.make_loss(model(inputs[mine]), targets[mine]).backward()
        optimizer.step()


if __name__ == "__main__":
    parts.on_two_ranks(work)
