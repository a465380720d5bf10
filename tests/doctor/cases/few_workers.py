# SPDX-License-Identifier: Apache-2.0
"""Sick: samples are made in the training process. Cured: by workers. Healthy: cheap samples without workers."""

import torch

import parts


class Expensive(parts.Samples):
    def __getitem__(self, index):
        inputs, targets = super().__getitem__(index)
        for _ in range(6000):  # about 1 ms of a core, as decoding a small picture
            index = (index * 1103515245 + 12345) % 2147483648
            str(index)
        return inputs, targets


if __name__ == "__main__":
    data = parts.Samples() if parts.HEALTHY else Expensive()
    if parts.CURED:
        torch.set_num_threads(1)
    model = parts.make_model()
    loader = parts.make_loader(data, num_workers=2 if parts.CURED else 0, persistent_workers=parts.CURED)
    parts.train(model, loader, parts.make_optimizer(model))
