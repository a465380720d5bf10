# SPDX-License-Identifier: Apache-2.0
"""Sick: garbage collection is off, and each step makes objects that refer to each other. Cured: they do not. Healthy: off
as well, and there are no such objects."""

import gc

import torch

import parts


class Step:
    def __init__(self, number):
        self.batch = torch.zeros(250_000)  # 1 MB
        self.history = [{"of": self if parts.SICK else number} for _ in range(10)]


def work(step, loss):
    if not parts.HEALTHY:
        Step(step)


if __name__ == "__main__":
    gc.disable()
    model = parts.make_model()
    parts.train(model, parts.make_loader(parts.Samples()), parts.make_optimizer(model), work)
