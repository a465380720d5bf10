# SPDX-License-Identifier: Apache-2.0
"""Sick: each sample reads a whole file of samples. Cured: the file is mapped once. Healthy: a file with one sample."""

import os

import numpy
import torch

import parts

FILE = os.path.join(parts.out_folder(), f"samples-{os.getpid()}.npy")
BYTES = 1 << 23


def write():
    inputs = parts.make_sample(0)[0].numpy()
    rows = 1 if parts.HEALTHY else BYTES // inputs.nbytes
    numpy.save(FILE, numpy.stack([inputs] * rows))


class Stored(parts.Samples):
    def __init__(self):
        super().__init__()
        self.mapped = numpy.load(FILE, mmap_mode="r")

    def __getitem__(self, index):
        file = self.mapped if parts.CURED else numpy.load(FILE)
        return torch.from_numpy(file[index % len(file)].copy()), super().__getitem__(index)[1]


if __name__ == "__main__":
    write()
    model = parts.make_model()
    parts.train(model, parts.make_loader(Stored()), parts.make_optimizer(model))
    os.unlink(FILE)
