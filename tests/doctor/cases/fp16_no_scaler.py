# SPDX-License-Identifier: Apache-2.0
"""Sick: autocast to fp16 without a scaler. Cured: with one. Healthy: bf16, which needs none."""

import torch

import parts

if __name__ == "__main__":
    parts.MODEL, parts.BATCH = "mlp", 8  # CPUs are slow in fp16
    model = parts.make_model()
    optimizer = parts.make_optimizer(model)
    scaler = torch.amp.GradScaler("cpu", enabled=parts.CURED)
    kind = torch.bfloat16 if parts.HEALTHY else torch.float16
    for inputs, targets in parts.batches(parts.make_loader(parts.Samples())):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=kind):
            loss = parts.make_loss(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(f"loss {loss.item():.6f}")
