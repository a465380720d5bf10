# SPDX-License-Identifier: Apache-2.0
"""Sick: anomaly detection was left on. Cured: off. Healthy: a check that every loss is finite."""

import torch

import parts

if __name__ == "__main__":
    torch.autograd.set_detect_anomaly(parts.SICK)
    model = parts.make_model()

    def check(step, loss):
        if parts.HEALTHY and not torch.isfinite(loss):
            raise SystemExit("the loss is not finite")

    parts.train(model, parts.make_loader(parts.Samples()), parts.make_optimizer(model), check)
