# SPDX-License-Identifier: Apache-2.0
"""Sick: gradients of large tensors are set to zero. Cured: to None. Healthy: to zero, but of small tensors."""

import torch

import parts


if __name__ == "__main__":
    if parts.HEALTHY and parts.MODEL == "mlp":
        parts.MODEL = "cnn"  # the other one is large
    model = parts.make_model() if parts.HEALTHY else parts.Wide(20_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    for inputs, targets in parts.batches(parts.make_loader(parts.Samples())):
        optimizer.zero_grad(set_to_none=parts.CURED)
        loss = parts.make_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.6f}")
