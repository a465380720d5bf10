# SPDX-License-Identifier: Apache-2.0
"""Sick: an iterable data set gives each worker all samples. Cured: its part. Healthy: one worker reads all."""

import torch

import parts


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if parts.CURED else (0, 1)
        for index in range(first, parts.BATCH * 200, step):
            yield parts.make_sample(index)


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = parts.make_model()
    loader = parts.make_loader(Stream(), num_workers=1 if parts.HEALTHY else 2)
    parts.train(model, loader, parts.make_optimizer(model))
