# SPDX-License-Identifier: Apache-2.0
"""Sick: gc.collect() after each step, over many objects. Cured: not called. Healthy: called, over frozen objects."""

import gc

import parts

if __name__ == "__main__":
    names = [{"name": str(i)} for i in range(200_000)]  # what a data set may keep
    model = parts.make_model()

    def clean(step, loss):
        if parts.SICK or (parts.HEALTHY and step % 50 == 49):
            gc.collect()

    if parts.HEALTHY:
        gc.freeze()

    parts.train(model, parts.make_loader(parts.Samples()), parts.make_optimizer(model), clean)
    print(len(names))
