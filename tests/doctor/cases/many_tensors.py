# SPDX-License-Identifier: Apache-2.0
"""Sick: a batch is hundreds of small tensors. Cured: one tensor. Healthy: hundreds, but made without workers."""

import torch

import parts


class Pieces(parts.Samples):
    def __getitem__(self, index):
        inputs, targets = super().__getitem__(index)
        return inputs, targets, [torch.full((8,), float(i)) for i in range(8)]


def apart(samples):
    inputs, targets, pieces = zip(*samples)
    return torch.stack(inputs), torch.stack(targets), [each for some in pieces for each in some]


def together(samples):
    inputs, targets, pieces = zip(*samples)
    return torch.stack(inputs), torch.stack(targets), torch.stack([torch.stack(each) for each in pieces])


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = parts.make_model()
    optimizer = parts.make_optimizer(model)
    loader = parts.make_loader(
        Pieces(), num_workers=0 if parts.HEALTHY else 1, collate_fn=together if parts.CURED else apart
    )
    for inputs, targets, pieces in parts.batches(loader):
        optimizer.zero_grad()
        loss = parts.make_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.6f}")
