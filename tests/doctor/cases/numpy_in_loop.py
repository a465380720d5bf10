# SPDX-License-Identifier: Apache-2.0
"""Sick: a metric in NumPy over a large table in each step. Cured: in torch, once in 50. Healthy: a cheap one."""

import numpy

import parts

TABLE = numpy.random.default_rng(0).standard_normal((1000 if parts.MODEL == "gpt" else 400, 1000))


def rank(loss):
    return float(numpy.argsort(TABLE * loss, axis=1).mean())


if __name__ == "__main__":
    model = parts.make_model()
    ranks = []

    def measure(step, loss):
        if parts.SICK or (parts.CURED and step % 50 == 49):
            ranks.append(rank(loss.item()))
        elif parts.HEALTHY:
            ranks.append(float(numpy.mean(TABLE[0])))

    parts.train(model, parts.make_loader(parts.Samples()), parts.make_optimizer(model), measure)
