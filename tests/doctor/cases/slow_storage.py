# SPDX-License-Identifier: Apache-2.0
"""Sick: each sample waits for a slow network, in one worker. Cured: in many. Healthy: files that lie in memory."""

import time

import parts


class Remote(parts.Samples):
    def __getitem__(self, index):
        if not parts.HEALTHY:
            time.sleep(0.004)  # a round trip
        return super().__getitem__(index)


if __name__ == "__main__":
    model = parts.make_model()
    workers = {"sick": 1, "cured": 12, "healthy": 1}[parts.VARIANT]
    loader = parts.make_loader(Remote(), num_workers=workers, persistent_workers=True)
    parts.train(model, loader, parts.make_optimizer(model))
