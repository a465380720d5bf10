# SPDX-License-Identifier: Apache-2.0
"""Sick: a large gradient is freed in each step, and its memory comes back page by page. Cured: by the environment
(case_environment.py). Healthy: as many pages are new, but of memory that the training keeps."""

import torch
from torch import nn

import parts


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [each for _ in range(200) for each in (nn.Linear(128, 128), nn.ReLU())]
        self.layers = nn.Sequential(*layers, nn.Linear(128, 10))

    def forward(self, inputs):
        return self.layers(inputs.flatten(1)[:, :128])


if __name__ == "__main__":
    if parts.HEALTHY and parts.MODEL == "gpt":
        parts.MODEL = "mlp"
    kept = []
    # 39 MiB: glibc maps blocks over 32 MiB again each time
    model = Small() if parts.HEALTHY else parts.Wide(40_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    keep = (lambda step, loss: kept.append(torch.ones(2_000_000))) if parts.HEALTHY else lambda step, loss: None
    parts.train(model, parts.make_loader(parts.Samples()), optimizer, keep)
