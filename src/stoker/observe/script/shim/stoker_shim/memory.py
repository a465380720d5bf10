# SPDX-License-Identifier: Apache-2.0
"""Notes the GPU's memory about once a second, and if memory ran out and ended the script, where and what was in it."""

import functools
import linecache
import re
import sys
import time
import traceback

from . import record, stacks
from .ledger import ledger
from .steps import steps

_EACH = 1.0  # seconds between two looks
_ASKED = re.compile(r"allocate ([\d.]+) (bytes|[KMGTP]iB)")
_NUMBER = re.compile(r"GPU (\d+) has a total capacity")
_UNITS = {"bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50}
# What ran out, by what the error says: torch's allocators, NumPy, and a DataLoader that lost a worker.
_ENDINGS = (
    ("gpu", re.compile(r"(CUDA|HIP) out of memory|CUDA error: out of memory")),
    ("shared", re.compile(r"DataLoader worker .*(shared memory|Bus error)", re.DOTALL)),
    ("worker", re.compile(r"DataLoader worker .*killed by signal: Killed")),
    ("host", re.compile(r"DefaultCPUAllocator: (can't allocate|not enough) memory|Unable to allocate|Cannot allocate memory")),
)  # fmt: skip


def watch(torch):
    steps.on_step.append(_Looks(torch).at_step)
    sys.excepthook = _noting(torch, sys.excepthook)


class _Looks:
    def __init__(self, torch):
        self._torch = torch
        self._next = 0.0

    @record.careful
    def at_step(self, step):
        now = time.monotonic()
        if now < self._next or not _uses_gpu(self._torch) or self._torch.cuda.is_current_stream_capturing():
            return
        self._next = now + _EACH
        stats = self._torch.cuda.memory_stats()
        record.write(
            "memory",
            step=step,
            allocated=stats.get("allocated_bytes.all.current", 0),
            allocated_peak=stats.get("allocated_bytes.all.peak", 0),  # since the start, or since the script reset it
            retries=stats.get("num_alloc_retries", 0),
            total=self._torch.cuda.get_device_properties(self._torch.cuda.current_device()).total_memory,
        )


def _noting(torch, own):
    @functools.wraps(own)
    def hook(kind, error, trace):
        try:
            _note_end(torch, error, trace)
        except BaseException:  # no memory to write its error down, or Ctrl-C: the script's own error is what counts
            pass
        own(kind, error, trace)

    return hook


@record.careful
def _note_end(torch, error, trace):
    text = " ".join(_messages(error))
    endings = [name for name, pattern in _ENDINGS if pattern.search(text)]
    if not endings and not isinstance(error, MemoryError):
        return
    calls = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in traceback.walk_tb(trace)]
    file, line = next(((file, line) for file, line, _ in reversed(calls) if stacks.is_own(file)), ("", 0))
    asked = _ASKED.search(text)
    figures = (_at_end(torch, text) or {}) if endings[:1] == ["gpu"] else {}
    record.write(
        "out_of_memory",
        what=(endings or ["host"])[0],
        where=stacks.where(file, line),
        text=linecache.getline(file, line).strip()[:200] if file else "",
        phase=_phase(calls),
        requested=float(asked[1]) * 2 ** _UNITS[asked[2]] if asked else None,
        **figures,
    )


def _messages(error):
    """Of the error and of those that led to it."""
    messages = {}  # by identity: errors may lead to each other
    while error is not None and id(error) not in messages:
        messages[id(error)] = str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return messages.values()


def _phase(calls):
    """What the training did, by the functions that had not returned."""
    def inside(part, function=""):
        return any(part in file and function in name for file, _, name in calls)

    if inside("torch/utils/data/"):
        return "fetch"
    if ledger.evaluates:
        return "evaluation"
    if inside("torch/autograd/", "backward"):
        return "backward"
    if inside("torch/optim/"):
        return "optimizer"
    return "forward" if inside("torch/nn/modules/module.py") else ""


def _uses_gpu(torch):
    return torch.cuda.is_available() and torch.cuda.is_initialized()


@record.careful
def _at_end(torch, text):
    """Bytes of the GPU that the error names, or of the current one."""
    if not _uses_gpu(torch):
        return {}
    number = _NUMBER.search(text)
    gpu = int(number[1]) if number else torch.cuda.current_device()
    stats = torch.cuda.memory_stats(gpu)
    free, total = torch.cuda.mem_get_info(gpu)
    return {
        "allocated": stats.get("allocated_bytes.all.current", 0),
        "reserved": stats.get("reserved_bytes.all.current", 0),
        "free": free,
        "total": total,
    }
