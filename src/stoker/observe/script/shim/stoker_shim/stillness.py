# SPDX-License-Identifier: Apache-2.0
"""Tells where a training stands when it makes no step for a minute: a deadlock, a dead worker, a rank that waits."""

import _thread
import linecache
import multiprocessing
import os
import sys
import time

from . import record, stacks
from .ledger import EVALUATION, ledger
from .steps import steps

_LEAST = float(os.environ.get("STOKER_DOCTOR_STILL", 60))  # seconds; a variable for tests
_STEPS = 20  # usual steps that must fit into the time
_LONG = (EVALUATION, "checkpoint", "compile")  # what may take this many times as long
_TIMES = 10


def watch(torch):
    _thread.start_new_thread(_run, ())  # unknown to threading: a script may join all threads that it knows


@record.careful
def _run():
    last, since, told = 0, time.monotonic(), False
    while True:
        time.sleep(_LEAST / 12)
        now = time.monotonic()
        if steps.count != last:
            last, since, told = steps.count, now, False
        elif not told and now - since > _limit(last) * (_TIMES if ledger.doing in _LONG else 1):
            told = True
            _tell(last, now - since)


def _limit(count):
    if count == 0:  # the script may prepare its data first; a child may have other work
        return 5 * _LEAST if multiprocessing.parent_process() is None else float("inf")
    return max(_LEAST, _STEPS * steps.usual_seconds())


def _tell(count, seconds):
    if count == 0 and record.others_train():
        return  # this one started them, as torchrun does
    frame = sys._current_frames().get(ledger.owner)
    if frame is None:
        return
    file, line, _, module = stacks.site_of(frame)
    place = stacks.where(file, line) or "no line of its own"
    text = linecache.getline(file, line).strip()[:200] if file else ""
    told = (
        f"no step for {seconds:.0f} s, after {count} steps: the training is at {place}"
        f"{f' ({text})' if text else ''}{f', in {module}' if module else ''}"
    )
    if count > 0:
        record.write("trouble", text=told)
    record.tell(told)
