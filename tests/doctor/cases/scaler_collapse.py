# SPDX-License-Identifier: Apache-2.0
"""Sick: some gradients are infinite in every second step. Cured: they are finite. Healthy: twice at the start."""

import torch

import parts

if __name__ == "__main__":
    model = parts.make_model()
    optimizer = parts.make_optimizer(model)
    scaler = torch.amp.GradScaler("cpu")
    for step, (inputs, targets) in enumerate(parts.batches(parts.make_loader(parts.Samples()))):
        optimizer.zero_grad()
        loss = parts.make_loss(model(inputs), targets)
        if (parts.SICK and step % 2 == 0) or (parts.HEALTHY and step < 2):
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print("scale", scaler.get_scale())
