# SPDX-License-Identifier: Apache-2.0
"""Sick: eight times as many threads of operators as cores. Cured: as many. Healthy: one thread, beside workers that
compute on the other cores."""

import os

import torch

import parts

if __name__ == "__main__":
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(8 * cores if parts.SICK else cores if parts.CURED else 1)
    model = parts.make_model()
    loader = parts.make_loader(parts.Samples(), num_workers=int(parts.HEALTHY), persistent_workers=parts.HEALTHY)
    parts.train(model, loader, parts.make_optimizer(model))
