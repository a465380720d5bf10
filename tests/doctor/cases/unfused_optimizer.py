# SPDX-License-Identifier: Apache-2.0
"""Sick: AdamW updates many tensors one by one. Cured: fused=True. Healthy: plain, but few small tensors."""

import torch
from torch import nn

import parts


def deep():
    layers = [each for _ in range(30) for each in (nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(64, 10))


class Deep(nn.Module):
    """The network, and many small layers beside it."""

    def __init__(self):
        super().__init__()
        self.inner, self.deep = parts.make_model(), deep()

    def forward(self, inputs):
        side = self.deep(inputs.flatten(1)[:, :64].float()).sum()
        return self.inner(inputs) + 0 * side


if __name__ == "__main__":
    model = parts.make_model() if parts.HEALTHY else Deep()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=not parts.SICK)
    parts.train(model, parts.make_loader(parts.Samples()), optimizer)
