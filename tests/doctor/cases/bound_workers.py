# SPDX-License-Identifier: Apache-2.0
"""Sick: all workers are bound to the same core. Cured: they may use all. Healthy: each has a core of its own. A step waits, as
for a device that computes, so that the workers need the cores most."""

import os
import time

import torch

import parts

CORES = sorted(os.sched_getaffinity(0))
WORK = 60_000 if parts.BATCH == 64 else 190_000


class Pictures(parts.Samples):
    """Samples that need computing."""

    def __getitem__(self, index):
        sum(i * i for i in range(1000 if parts.HEALTHY else WORK))
        return super().__getitem__(index)


def bind(worker):
    if not parts.CURED:
        os.sched_setaffinity(0, {CORES[0 if parts.SICK else worker]})


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = parts.make_model()
    loader = parts.make_loader(Pictures(), num_workers=2, persistent_workers=True, worker_init_fn=bind)
    parts.train(model, loader, parts.make_optimizer(model), lambda step, loss: time.sleep(0.05))
