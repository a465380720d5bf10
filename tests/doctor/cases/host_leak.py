# SPDX-License-Identifier: Apache-2.0
"""Sick: workers read a large Python list. Cured: the same items in one array. Healthy: a short list."""

import numpy
import torch

import parts


class Items(parts.Samples):
    def __init__(self):
        super().__init__(count=1_000_000)
        count = 1000 if parts.HEALTHY else 1_500_000
        names = [f"pictures/{i:08d}.jpg" for i in range(count)]
        self.names = numpy.array(names, dtype="S24") if parts.CURED else names

    def __getitem__(self, index):
        start = index * 997 % (len(self.names) - 600)
        for i in range(600):
            name = self.names[start + i]
        assert name
        return super().__getitem__(index)


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = parts.make_model()
    loader = parts.make_loader(Items(), num_workers=1, shuffle=True)
    parts.train(model, loader, parts.make_optimizer(model))
