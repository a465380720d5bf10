# SPDX-License-Identifier: Apache-2.0
"""Sick: each worker computes on as many threads as there are cores. Cured: on one. Healthy: one worker."""

import os

import torch

import parts


class Heavy(parts.Samples):
    def __getitem__(self, index):
        inputs, targets = super().__getitem__(index)
        noise = torch.randn(300, 300)
        return inputs + (noise @ noise).mean() * 0, targets


def start(worker):
    torch.set_num_threads(2 * os.cpu_count() if parts.SICK else 1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = parts.make_model()
    workers = 1 if parts.HEALTHY else 2
    loader = parts.make_loader(Heavy(), num_workers=workers, worker_init_fn=start, persistent_workers=True)
    parts.train(model, loader, parts.make_optimizer(model))
