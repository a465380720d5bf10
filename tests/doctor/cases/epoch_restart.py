# SPDX-License-Identifier: Apache-2.0
"""Sick: each short epoch starts its workers anew. Cured: they persist. Healthy: long epochs, so it does not matter."""

import time

import parts


class Opened(parts.Samples):
    """Each worker opens its files first, which takes a while."""

    opened = False

    def __getitem__(self, index):
        if not self.opened:
            time.sleep(0.3)
            self.opened = True
        return super().__getitem__(index)


if __name__ == "__main__":
    model = parts.make_model()
    batches = 400 if parts.HEALTHY else 20
    loader = parts.make_loader(Opened(parts.BATCH * batches), num_workers=1, persistent_workers=parts.CURED)
    parts.train(model, loader, parts.make_optimizer(model))
