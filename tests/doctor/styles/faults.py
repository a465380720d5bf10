# SPDX-License-Identifier: Apache-2.0
"""Faults that a training script may have, by name. Used by the scripts beside it: each is written as public tutorials
write them, with one fault at a time. Each call does nothing unless its fault was asked for."""

import gc
import hashlib
import os
import sys
import time

import numpy
import torch

FAULT = sys.argv[1] if len(sys.argv) > 1 else "none"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 60
# Fault: the doctor's rule.
RULES = {
    "slow_samples": "input_wait",
    "slow_disk": "input_wait",
    "anomaly": "debug_apis_on",
    "gc_collect": "gc_churn",
    "checkpoints": "checkpoint_stall",
    "numpy_metric": "host_code",
    "kept_losses": "kept_history",
    "dropped_to": "unread_result",
}
_objects = [[i] for i in range(300_000)] if FAULT == "gc_collect" else []
_table = numpy.random.default_rng(0).standard_normal((400, 1000))
_kept = []

if FAULT == "anomaly":
    torch.autograd.set_detect_anomaly(True)


class Slow(torch.utils.data.Dataset):
    """The samples of another data set, later."""

    def __init__(self, inner):
        self.inner = inner

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        if FAULT == "slow_samples":
            number = index
            for _ in range(8000):
                number = (number * 1103515245 + 12345) % 2147483648
                str(number)
        elif FAULT == "slow_disk":
            time.sleep(0.002)
        return self.inner[index]


def rank(loss):
    return float(numpy.argsort(_table * loss, axis=1).mean())


def each_step(model, loss):
    """What the loop does at the end of a step."""
    if FAULT == "gc_collect":
        gc.collect()
    elif FAULT == "checkpoints":
        torch.save(model.state_dict(), os.path.join(os.environ.get("CASE_OUT", "/tmp"), "style.pt"))
    elif FAULT == "numpy_metric":
        rank(loss.item())
        rank(2 * loss.item())
    elif FAULT == "kept_losses":
        _kept.append(loss)
    elif FAULT == "dropped_to":
        loss.to(torch.float64)


def say(model):
    """All that a watcher could have changed."""
    digest = hashlib.sha256()
    for tensor in [*model.state_dict().values(), torch.get_rng_state()]:
        digest.update(tensor.detach().contiguous().cpu().numpy().tobytes())
    print(digest.hexdigest())
