# SPDX-License-Identifier: Apache-2.0
"""Sick: a batch is made of a list of arrays, number by number. Cured and healthy: the arrays are stacked first."""

import numpy
import torch

import parts

TIMES = 64 if parts.MODEL == "gpt" else 4  # as large as its own samples: tokens are few numbers


def slow(samples):
    inputs = torch.tensor([each[0].numpy().tolist() for each in samples], dtype=samples[0][0].dtype)
    return inputs, torch.tensor([each[1].tolist() for each in samples])


def fast(samples):
    inputs = torch.from_numpy(numpy.stack([each[0].numpy() for each in samples]))
    return inputs, torch.stack([each[1] for each in samples])


class Larger(parts.Samples):
    def __getitem__(self, index):
        inputs, targets = super().__getitem__(index)
        return inputs.repeat(TIMES, *[1] * (inputs.dim() - 1)), targets


class First(torch.nn.Module):
    """Takes the part of the larger input that the network knows."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, inputs):
        return self.inner(inputs[:, : inputs.shape[1] // TIMES])


if __name__ == "__main__":
    model = First(parts.make_model())
    loader = parts.make_loader(Larger(), collate_fn=slow if parts.SICK else fast)
    parts.train(model, loader, parts.make_optimizer(model))
