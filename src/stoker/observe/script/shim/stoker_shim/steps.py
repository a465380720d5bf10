# SPDX-License-Identifier: Apache-2.0
"""Counts steps and writes their time, about once a second.

A step ends with the call of the first optimizer's step(); in a program without one, with a batch of a DataLoader.
"""

import os
import sys
import threading
import time
import weakref

from . import record
from .ledger import EVALUATION, ledger
from .page_faults import measure, page_faults

_EACH, _EARLY, _EARLY_FOR = 1.0, 0.25, 10.0  # seconds of a period; at the start they are shorter, for so long
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Steps:
    def __init__(self):
        self.on_step = []  # functions called with the number of the step that ended
        self.on_fetch = []  # functions called at each batch
        self.own_seconds = 0.0  # that looks of ours took, on the thread that trains
        self.begin()

    def begin(self):
        self.count = 0
        self.paused = False  # what happens now is in no period: we slow the steps down
        self.optimizer = None
        self._inside = False
        self._written = 0
        self._start = None  # of the period; None: no step ended yet
        self._fed = None  # when the first batch of the step came; None: not yet
        self._usual = [0.0, 0]  # seconds from there to the end of a step, and steps
        self._started = None  # the loader whose workers started for this step
        self._pace = [0.0, 0, None]  # seconds from step to step, steps, and when the last one ended

    def usual_seconds(self):
        """From step to step; 0 before there were two."""
        seconds, count, _ = self._pace
        return seconds / count if count else 0.0

    @record.careful
    def before_optimizer(self, optimizer, args, kwargs):
        if self.optimizer is None:
            ledger.adopt()
            self.begin()
            self.optimizer = weakref.ref(optimizer)
            record.write("training", optimizer=type(optimizer).__name__, gpu=_gpu())
        elif self.optimizer() is None:  # it is gone, and the script trains with another one
            self.optimizer = weakref.ref(optimizer)
        elif threading.get_ident() != ledger.owner:
            return
        if self._inside:  # the last step() raised
            ledger.leave()
        ledger.end_evaluation(real=False)
        ledger.enter("optimizer")
        self._inside = True

    @record.careful
    def after_optimizer(self, optimizer, args, kwargs):
        if threading.get_ident() != ledger.owner or not self._inside:
            return
        ledger.leave()
        self._inside = False
        if self.optimizer() is optimizer:
            self._ended()

    @record.careful
    def fetched(self, started=None):
        """A batch came, of a loader whose workers were just started if it is given. Without an optimizer that is a step."""
        if threading.get_ident() != ledger.owner:
            return
        for function in self.on_fetch:
            function()
        if ledger.doing != EVALUATION and (self._fed is None or started is not None):
            self._fed, self._started = time.monotonic(), started
        if self.optimizer is None:
            self._ended()

    def _note_work(self, now):
        """After a fork each page that the training writes is copied once, so the first step takes longer."""
        if self._fed is not None:
            seconds, (spent, count) = now - self._fed, self._usual
            if self._started is None:
                self._usual = [spent + seconds, count + 1]
            elif count > 0:
                record.write("first_step", loader=self._started, seconds=seconds, usual=spent / count)
        self._fed = None
        spent, count, before = self._pace
        self._pace = [spent, count, now] if before is None else [spent + now - before, count + 1, now]

    def _ended(self):
        self.count += 1
        now = time.monotonic()
        if not self.paused:
            self._note_work(now)
        if self._start is None:  # the first step: starting up is no training
            measure()
            ledger.begin()
            page_faults.begin()
            self._start = self._first = now = time.monotonic()
            self._written = self.count
        elif not self.paused and now - self._start >= (_EARLY if now - self._first < _EARLY_FOR else _EACH):
            self.write(now)
        for function in self.on_step:
            function(self.count)

    def write(self, now=None):
        if self._start is None or self.paused or self.count == self._written:
            return
        now = now or time.monotonic()
        parts = ledger.take()
        ours = parts.pop("doctor", (0.0, 0.0))[0]  # what we did meanwhile is no time of the training
        record.write(
            "period",
            begin=self._start,
            last_step=self.count,
            steps=self.count - self._written,
            seconds=now - self._start - ours,
            parts=parts,
            tracker_seconds=ledger.take_tracker_seconds(),
            resident_bytes=_resident(),
            **page_faults.take(),
        )
        self._start, self._written = now, self.count

    def pause(self):
        """From here on, steps are in no period: we slow them down."""
        self.write()
        self.paused = True

    def go_on(self):
        ledger.take()
        ledger.take_tracker_seconds()
        page_faults.begin()
        self._start, self._written = time.monotonic(), self.count
        self._pace[2] = self._fed = None
        self.paused = False


steps = Steps()


@record.careful
def _gpu():
    """The PCI bus id of the GPU that the script uses; none if it uses none, or if this torch does not tell."""
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized():
        return None
    gpu = cuda.get_device_properties(cuda.current_device())
    return f"{gpu.pci_domain_id:08x}:{gpu.pci_bus_id:02x}:{gpu.pci_device_id:02x}.0" if hasattr(gpu, "pci_bus_id") else None


def watch(torch):
    from torch.optim import optimizer

    optimizer.register_optimizer_step_pre_hook(steps.before_optimizer)
    optimizer.register_optimizer_step_post_hook(steps.after_optimizer)
    record.at_end(steps.write)
    os.register_at_fork(after_in_child=_in_child)


def _in_child():
    ledger.owner = threading.get_ident()
    ledger.trains = False
    ledger.begin()
    steps.begin()


def _resident():
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return None
