# SPDX-License-Identifier: Apache-2.0
"""Sick: the result of .to() is dropped. Cured: taken. Healthy: a module's .to(), which works in place."""

import torch

import parts

if __name__ == "__main__":
    model = parts.make_model()
    model.to(torch.device("cpu"))
    optimizer = parts.make_optimizer(model)
    for inputs, targets in parts.batches(parts.make_loader(parts.Samples())):
        optimizer.zero_grad()
        loss = parts.make_loss(model(inputs), targets)
        if parts.SICK:
            loss.to(torch.float64)
        elif parts.CURED:
            loss = loss.to(torch.float64)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.6f}")
