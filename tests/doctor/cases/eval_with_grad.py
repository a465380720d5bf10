# SPDX-License-Identifier: Apache-2.0
"""Sick: evaluation records graphs. Cured: torch.inference_mode(). Healthy: a short evaluation that is without them."""

import contextlib

import torch

import parts

if __name__ == "__main__":
    model = parts.make_model()
    held_out = parts.make_loader(parts.Samples())

    def evaluate(step, loss):
        if step % 10 != 9:
            return
        model.eval()
        with contextlib.nullcontext() if parts.SICK else torch.inference_mode():
            for i, (inputs, targets) in enumerate(held_out):
                model(inputs)
                if i == (1 if parts.HEALTHY else 12):
                    break
        model.train()

    parts.train(model, parts.make_loader(parts.Samples()), parts.make_optimizer(model), evaluate)
