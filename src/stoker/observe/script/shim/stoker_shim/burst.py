# SPDX-License-Identifier: Apache-2.0
"""Records a few steps of a training on a GPU with PyTorch's own profiler, and then which lines wait for the GPU.

Host time alone does not tell what a GPU does. The trace goes into the folder of records; `stoker doctor` reads it as any
other trace. Its steps are left out of the periods, since the profiler slows them down. Nothing is recorded beside a
profiler of the script.
"""

import functools
import linecache
import os
import sys
import threading
import time

from . import record, stacks
from .ledger import ledger
from .steps import steps

_FIRST = 24  # the step after which it begins: stacks.py, calls.py and numerics.py have mostly ended
_STEPS, _MOST_SECONDS = 5, 3.0  # recorded, after one in which the profiler starts up; two at least
_WAITING_STEPS = 3  # in which lines that wait are noted
_READS = ("item", "cpu", "tolist", "__bool__", "__float__", "__int__", "__index__", "nonzero", "__repr__", "__format__")


def watch(torch):
    burst = Burst(torch)
    steps.on_step.append(burst.at_step)


class Burst:
    def __init__(self, torch):
        self._torch = torch
        self._profiler = self._mark = self._waits = None
        self._begun = 0.0
        self._from = 0  # the first step that is recorded
        self._process = 0
        self._done = False

    @record.careful
    def at_step(self, step):
        if self._done or step < _FIRST or threading.get_ident() != ledger.owner:
            return
        try:
            self._done = not self._go_on(step)
        except Exception:
            self._done = True
            raise
        finally:
            if self._done and steps.paused:
                steps.go_on()

    def _go_on(self, step):
        """False if all is done."""
        if self._profiler is not None:
            self._mark_step(step)
        elif self._waits is None:
            if not _wanted(self._torch) or self._torch.autograd._profiler_enabled():
                return False
            self._begin(step)
        elif step >= self._waits.until:
            self._waits.end()
            return False
        return True

    def _begin(self, step):
        steps.pause()
        self._process = os.getpid()
        gpu = _works_on_gpu(self._torch)
        self._profiler = self._torch.autograd.profiler.profile(use_kineto=True, use_device="cuda" if gpu else None)
        self._profiler._prepare_trace()
        self._profiler._start_trace()
        self._begun, self._from = time.monotonic(), step + 1
        record.at_end(self._end)

    def _mark_step(self, step):
        self._close_mark()
        recorded = step - self._from
        if recorded >= _STEPS or (recorded >= 2 and time.monotonic() - self._begun > _MOST_SECONDS):
            self._end()
            self._waits = Waits(self._torch, step + _WAITING_STEPS)
        else:
            self._mark = self._torch.autograd.profiler.record_function(f"ProfilerStep#{step + 1}")
            self._mark.__enter__()

    def _close_mark(self):
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None

    def _end(self):
        if self._profiler is None or self._process != os.getpid():  # also at the end of a child that was forked meanwhile
            return
        self._profiler, torch = None, self._torch
        self._close_mark()
        gpu = _works_on_gpu(torch)
        if gpu:
            torch.cuda.synchronize()
        stopped = time.monotonic()
        _detach_from_driver()
        results = torch.autograd.profiler._disable_profiler()
        torch.autograd.profiler._run_on_profiler_stop()
        name = f"burst-{os.getpid()}.json"
        results.save(os.path.join(record.folder(), name))
        memory = _memory(torch) if gpu else None
        record.write("burst", trace=name, steps=steps.count - self._from, seconds=stopped - self._begun,
                     saving_seconds=time.monotonic() - stopped, memory=memory)


class Waits:
    """The script's lines that read a value of the GPU, or copy to it so that the host waits; for some steps."""

    def __init__(self, torch, until):
        self.until = until
        self._torch = torch
        self._inside = False
        self._rows = {}
        self._own = {}
        self._begun, self._from = time.perf_counter(), steps.count
        for name in _READS:
            self._replace(torch.Tensor, name, self._noted_read)
        for name in ("to", "cuda"):
            self._replace(torch.Tensor, name, self._noted_copy)
        for owner in (torch.cuda, torch.cuda.Stream, torch.cuda.Event):
            self._replace(owner, "synchronize", self._noted_call)
        self._replace(torch.cuda, "empty_cache", self._noted_call)
        record.at_end(self.end)

    def _replace(self, owner, name, wrapped):
        own = getattr(owner, name)
        self._own[owner, name] = (name in vars(owner), own)
        setattr(owner, name, wrapped(name, own))

    def end(self):
        if not self._own:
            return
        for (owner, name), (there, own) in self._own.items():
            setattr(owner, name, own) if there else delattr(owner, name)
        self._own = {}
        rows = sorted(self._rows.values(), key=lambda each: -each["seconds"])
        record.write("waits", steps=steps.count - self._from, seconds=time.perf_counter() - self._begun, rows=rows[:30])

    def _noted_read(self, name, own):
        @functools.wraps(own)
        def wrapper(tensor, *args, **kwargs):
            if not getattr(tensor, "is_cuda", False):
                return own(tensor, *args, **kwargs)
            return self._timed(name, lambda result: "read", own, tensor, *args, **kwargs)

        return wrapper

    def _noted_copy(self, name, own):
        @functools.wraps(own)
        def wrapper(tensor, *args, **kwargs):
            return self._timed(name, lambda result: _copy_kind(tensor, result, args, kwargs), own, tensor, *args, **kwargs)

        return wrapper

    def _noted_call(self, name, own):
        @functools.wraps(own)
        def wrapper(*args, **kwargs):
            return self._timed(name, lambda result: name, own, *args, **kwargs)

        return wrapper

    def _timed(self, name, kind_of, own, *args, **kwargs):
        """A call inside of a noted call, as item() of print(tensor), counts with it."""
        if self._inside or threading.get_ident() != ledger.owner:
            return own(*args, **kwargs)
        self._inside = True
        start = time.perf_counter()
        try:
            result = own(*args, **kwargs)
        finally:
            self._inside = False
        self._note(name, kind_of(result), time.perf_counter() - start, result)
        return result

    @record.careful
    def _note(self, name, kind, seconds, result):
        if not kind:
            return
        file, line, _, _ = stacks.site_of(sys._getframe(1))
        row = self._rows.setdefault(
            (name, kind, file, line),
            {"call": name, "kind": kind, "where": stacks.where(file, line), "times": 0, "seconds": 0.0, "bytes": 0,
             "text": linecache.getline(file, line).strip()[:200] if file else ""})
        row["times"] += 1
        row["seconds"] += seconds
        if isinstance(result, self._torch.Tensor):
            row["bytes"] += result.numel() * result.element_size()


def _copy_kind(tensor, result, args, kwargs):
    """ "to_gpu pageable blocking", "to_cpu"; empty if nothing was copied between host and GPU."""
    if not hasattr(result, "is_cuda") or result.is_cuda == tensor.is_cuda:
        return ""
    if tensor.is_cuda:
        return "to_cpu"
    waits = not (kwargs.get("non_blocking") or any(each is True for each in args))
    return f"to_gpu {'pinned' if tensor.is_pinned() else 'pageable'} {'blocking' if waits else 'async'}"


def _detach_from_driver():
    """Has the profiler leave the CUDA driver when it ends, else each later launch of a kernel takes twice as long.

    Kineto reads TEARDOWN_CUPTI when a recording ends (CuptiActivityApi.cpp). Not with CUDA graphs, which PyTorch says do
    not outlive it (torch/profiler/profiler.py).
    """
    inductor = sys.modules.get("torch._inductor.config")
    if inductor is None or not inductor.triton.cudagraphs:
        os.environ.setdefault("TEARDOWN_CUPTI", "1")


def _wanted(torch):
    return _works_on_gpu(torch) or os.environ.get("STOKER_DOCTOR_BURST") == "cpu"  # which is for our tests


def _works_on_gpu(torch):
    """Whether the weights that the first optimizer changes are on a GPU."""
    optimizer = steps.optimizer and steps.optimizer()
    if not torch.cuda.is_available() or not torch.cuda.is_initialized() or optimizer is None:
        return False
    return any(each.is_cuda for group in optimizer.param_groups for each in group["params"])


def _memory(torch):
    stats = torch.cuda.memory_stats()
    return {
        "allocated_peak": stats.get("allocated_bytes.all.peak", 0),
        "reserved_peak": stats.get("reserved_bytes.all.peak", 0),
        "total": torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory,
        "retries": stats.get("num_alloc_retries", 0),
        "device_allocations": stats.get("num_device_alloc", 0),
        "device_frees": stats.get("num_device_free", 0),
    }
