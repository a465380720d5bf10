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
        record.write("memory", step=step, **_of_gpu(self._torch))


def _noting(torch, own):
    @functools.wraps(own)
    def hook(kind, error, trace):
        _note_end(torch, error, trace)
        own(kind, error, trace)

    return hook


@record.careful
def _note_end(torch, error, trace):
    text = " ".join(_messages(error))
    endings = [name for name, pattern in _ENDINGS if pattern.search(text)]
    if not endings and not isinstance(error, MemoryError):
        return
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    own = [each for each in lines if stacks.is_own(each[0])]
    file, line = own[-1] if own else ("", 0)
    asked = _ASKED.search(text)
    gpu = endings[:1] == ["gpu"] and _uses_gpu(torch)
    record.write(
        "out_of_memory",
        what=(endings or ["host"])[0],
        where=stacks.where(file, line),
        text=linecache.getline(file, line).strip()[:200] if file else "",
        phase=_phase(frames),
        step=steps.count,
        requested=float(asked[1]) * 2 ** _UNITS[asked[2]] if asked else None,
        **(_of_gpu(torch, free=True) if gpu else {}),
    )


def _messages(error):
    """Of the error and of those that led to it."""
    seen = []
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return [str(each) for each in seen]


def _phase(frames):
    """What the training did, by the functions that had not returned."""
    names = [(frame.f_code.co_filename, frame.f_code.co_name) for frame in frames]
    for phase, file, function in (
        ("fetch", "torch/utils/data/", ""),
        ("evaluation", "", "") if ledger.evaluates else ("backward", "torch/autograd/", "backward"),
        ("optimizer", "torch/optim/", ""),
    ):
        if any(file in name[0] and function in name[1] for name in names):
            return phase
    return "forward"


def _uses_gpu(torch):
    return torch.cuda.is_available() and torch.cuda.is_initialized()


def _of_gpu(torch, free=False):
    """Bytes of the current GPU. The peaks are since the start, or since the script reset them."""
    stats = torch.cuda.memory_stats()
    memory = {
        "allocated": stats.get("allocated_bytes.all.current", 0),
        "allocated_peak": stats.get("allocated_bytes.all.peak", 0),
        "reserved": stats.get("reserved_bytes.all.current", 0),
        "retries": stats.get("num_alloc_retries", 0),
        "total": torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory,
    }
    if free:
        memory["free"] = torch.cuda.mem_get_info()[0]
    return memory
