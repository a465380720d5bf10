# SPDX-License-Identifier: Apache-2.0
"""Records a few steps of a training on a GPU with PyTorch's own profiler.

Host time alone does not tell what a GPU does. The trace goes into the folder of records; `stoker doctor` reads it as any
other trace. Its steps are left out of the periods, since the profiler slows them down. Nothing is recorded beside another
profiler; if one of the script starts meanwhile, or an evaluation, a checkpoint or a fork interrupts the steps, ours ends.
"""

import functools
import os
import sys
import threading
import time

from . import record
from .ledger import ledger
from .steps import steps
from .waits import Waits

_FIRST = 24  # the step after which it begins: stacks.py, calls.py and numerics.py have mostly ended
_STEPS = 5  # recorded, after one in which the profiler starts up
_LONGEST_STEP, _MOST_SECONDS = 1.0, 10.0  # of a step, else nothing is recorded; of a burst, else it is thrown away
_AFTER = 3  # steps in which lines that wait are noted, and the profiler leaves the driver
_TRIES = 3
_LEAVES = "TEARDOWN_CUPTI"


def watch(torch):
    burst = Burst(torch)
    steps.on_step.append(burst.at_step)
    steps.on_fetch.append(burst.look_at_clock)
    ledger.on_pause = burst.interrupt
    os.register_at_fork(before=burst.interrupt)
    graphs = getattr(torch.cuda, "CUDAGraph", None)
    if graphs is not None:
        graphs.capture_begin = _noting(graphs.capture_begin, burst)


def _noting(own, burst):
    @functools.wraps(own)
    def wrapper(*args, **kwargs):
        burst.graphs = True
        return own(*args, **kwargs)

    return wrapper


class Burst:
    def __init__(self, torch):
        self.graphs = False  # the script captures CUDA graphs
        self._torch = torch
        self._profiler = self._mark = self._waits = None
        self._begun = 0.0
        self._from = 0  # the first step that is marked
        self._until = 0  # the last step of those after the burst; 0: it has not ended
        self._first, self._tries = _FIRST, 0
        self._process = os.getpid()
        self._asked_to_end = self._set_variable = False
        self._own = {}  # functions of torch.autograd.profiler
        self._done = False

    @record.careful
    def at_step(self, step):
        if self._done or step < self._first or threading.get_ident() != ledger.owner:
            return
        try:
            self._done = not self._go_on(step)
        except Exception:
            self._throw_away()
            self._done = True
            raise
        finally:
            if self._done and steps.paused:
                steps.go_on()

    @record.careful
    def look_at_clock(self):
        """At each batch: a training may go on without steps of the optimizer that we count."""
        if self._profiler is not None and time.monotonic() - self._begun > _MOST_SECONDS:
            self.interrupt()

    @record.careful
    def interrupt(self):
        """Something else than steps begins, or a child that would go on with what we set. The burst starts again later."""
        if threading.get_ident() != ledger.owner:
            return
        if self._waits is not None and self._waits.end():
            self._waits = None
        if self._profiler is not None:
            self._throw_away()
            self._first = steps.count + 2
            self._done = self._tries >= _TRIES
            steps.go_on()

    def _go_on(self, step):
        """False if all is done."""
        if self._asked_to_end:
            self._throw_away()
            return False
        if self._profiler is not None:
            return self._mark_step(step)
        if self._until == 0:
            return self._begin(step)
        if step < self._until or (self._waits is not None and not self._waits.end()):
            return True
        self._waits = None
        self._forget_variable()
        return False

    def _begin(self, step):
        if not _wanted(self._torch, self.graphs) or steps.usual_seconds() > _LONGEST_STEP:
            return False
        steps.pause()
        self._tries += 1
        gpu = _works_on_gpu(self._torch)
        profiler = self._torch.autograd.profiler.profile(use_kineto=True, use_device="cuda" if gpu else None)
        profiler._prepare_trace()
        profiler._start_trace()
        self._profiler, self._process = profiler, os.getpid()
        self._begun, self._from = time.monotonic(), step + 1
        self._give_way()
        if self._tries == 1:
            record.at_end(self._end)
        return True

    def _end(self):
        """At the end of the process, which would crash with a profiler on. It does not wait for the GPU."""
        if threading.get_ident() == ledger.owner and self._process == os.getpid():
            self._throw_away(leave_driver=False)

    def _give_way(self):
        """Two profilers cannot run at once, so the script's own would raise an error."""
        module = self._torch.autograd.profiler
        self._own = {name: getattr(module, name) for name in ("_prepare_profiler", "_enable_profiler")}

        def ending_ours(own):
            @functools.wraps(own)
            def wrapper(*args, **kwargs):
                self._another_begins()
                return own(*args, **kwargs)

            return wrapper

        for name, own in self._own.items():
            setattr(module, name, ending_ours(own))

    @record.careful
    def _another_begins(self):
        if threading.get_ident() == ledger.owner:
            self._throw_away(leave_driver=False)
            self._forget_variable()
        self._asked_to_end = True

    def _forget_variable(self):
        """The script's own profilers find the environment as it was."""
        if self._set_variable:
            os.environ.pop(_LEAVES, None)

    def _mark_step(self, step):
        self._close_mark()
        if step - self._from < _STEPS:
            self._mark = self._torch.autograd.profiler.record_function(f"ProfilerStep#{step + 1}")
            self._mark.__enter__()
            return True
        self._keep(step)
        self._until = step + _AFTER
        self._waits = None if _compiles() else Waits(self._torch)
        return True

    def _close_mark(self):
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _keep(self, step):
        torch = self._torch
        if _works_on_gpu(torch):
            torch.cuda.synchronize()
        seconds = time.monotonic() - self._begun
        name = f"burst-{os.getpid()}.json"
        self._stop().save(os.path.join(record.folder(), name))
        record.write("burst", trace=name, steps=step - self._from, seconds=seconds)

    def _throw_away(self, leave_driver=True):
        if self._profiler is not None:
            self._stop(leave_driver)

    def _stop(self, leave_driver=True):
        self._profiler = None
        for name, own in self._own.items():
            setattr(self._torch.autograd.profiler, name, own)
        try:
            self._close_mark()
            if leave_driver:
                self._leave_driver()
        finally:
            results = self._torch.autograd.profiler._disable_profiler()
            self._torch.autograd.profiler._run_on_profiler_stop()
        return results

    def _leave_driver(self):
        """Else each later launch of a kernel takes up to twice as long.

        Kineto reads the variable when a recording ends (CuptiActivityApi.cpp). PyTorch says that CUDA graphs of
        torch.compile do not outlive it (torch/profiler/profiler.py).
        """
        inductor = sys.modules.get("torch._inductor.config")
        if _LEAVES not in os.environ and (inductor is None or not inductor.triton.cudagraphs):
            os.environ[_LEAVES] = "1"
            self._set_variable = True


def _compiles():
    """Whether torch.compile is in use, which looks at modes of functions."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])


def _wanted(torch, graphs):
    if torch.autograd._profiler_enabled() or graphs or "CUDA_INJECTION64_PATH" in os.environ:  # the last is Nsight's
        return False
    if _works_on_gpu(torch):
        return not torch.cuda.is_current_stream_capturing()
    return os.environ.get("STOKER_DOCTOR_BURST") == "cpu"  # for our tests


def _works_on_gpu(torch):
    """Whether the weights that the first optimizer changes are on a GPU."""
    optimizer = steps.optimizer and steps.optimizer()
    if not torch.cuda.is_available() or not torch.cuda.is_initialized() or optimizer is None:
        return False
    return any(each.is_cuda for group in optimizer.param_groups for each in group["params"])
