# SPDX-License-Identifier: Apache-2.0
"""Sick: an evaluation keeps a map of each batch, together a quarter of the memory. Cured: it keeps none. Healthy: it keeps the
outputs of a small network. Nobody writes into the maps, so the case fits everywhere."""

import os

import torch

import parts

MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
BATCHES = 60


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    outputs = []
    for inputs, targets in loader:
        result = model(inputs) if parts.HEALTHY else torch.empty(MEMORY // 4 // BATCHES, dtype=torch.uint8)
        if not parts.CURED:
            outputs.append(result)
    model.train()
    return outputs


if __name__ == "__main__":
    model = parts.make_model()
    loader = parts.make_loader(parts.Samples())
    evaluation = parts.make_loader(parts.Samples(BATCHES * parts.BATCH))

    def each_step(step, loss):
        if step == parts.STEPS // 2:
            evaluate(model, evaluation)

    parts.train(model, loader, parts.make_optimizer(model), each_step)
