# SPDX-License-Identifier: Apache-2.0
"""Sick: the model computes in float64, as the arrays of its data do. Cured: in float32. Healthy: only a small head does."""

import torch

import parts


class Doubled(parts.Samples):
    def __getitem__(self, index):
        inputs, targets = super().__getitem__(index)
        return inputs.double() if parts.SICK and inputs.is_floating_point() else inputs, targets


class Head(torch.nn.Module):
    """Ends in a few sums of float64."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.scale = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))

    def forward(self, inputs):
        return self.inner(inputs).double() * self.scale


if __name__ == "__main__":
    model = parts.make_model()
    model = model.double() if parts.SICK else Head(model) if parts.HEALTHY else model
    parts.train(model, parts.make_loader(Doubled()), parts.make_optimizer(model))
