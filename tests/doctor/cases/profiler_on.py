# SPDX-License-Identifier: Apache-2.0
"""Sick: a profiler records every step. Cured: none. Healthy: a schedule that records three of them."""

import contextlib

import torch

import parts

if __name__ == "__main__":
    schedule = torch.profiler.schedule(wait=10, warmup=1, active=3, repeat=1) if parts.HEALTHY else None
    model = parts.make_model()
    with contextlib.nullcontext() if parts.CURED else torch.profiler.profile(schedule=schedule) as profiler:

        def next_step(step, loss):
            if profiler is not None:
                profiler.step()

        parts.train(model, parts.make_loader(parts.Samples()), parts.make_optimizer(model), next_step)
