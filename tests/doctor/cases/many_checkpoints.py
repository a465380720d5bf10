# SPDX-License-Identifier: Apache-2.0
"""Sick: a checkpoint after every second step. Cured: one after 200 steps. Healthy: small ones, rarely."""

import os

import torch

import parts

if __name__ == "__main__":
    model = parts.make_model()
    path = os.path.join(parts.out_folder(), "checkpoint.pt")
    optimizer = parts.make_optimizer(model)

    def save(step, loss):
        if step % (2 if parts.SICK else 200) == 1:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)

    parts.train(model, parts.make_loader(parts.Samples()), optimizer, save)
