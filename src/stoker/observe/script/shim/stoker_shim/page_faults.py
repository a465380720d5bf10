# SPDX-License-Identifier: Apache-2.0
"""Counts the page faults of the thread that trains, and measures what one costs."""

import mmap
import os
import resource
import threading
import time

from . import record
from .ledger import ledger

_BYTES = 4 << 20  # 2 ms, once


class PageFaults:
    """Of a period at a time. Faults that need a disk do not count."""

    def __init__(self):
        self._begun = None
        self._forks = 0

    def begin(self):
        self._begun, self._forks = _used(), 0

    def forking(self):
        self._forks += 1

    def take(self):
        """Fields for the record of a period; the next one begins."""
        before, forks = self._begun, self._forks
        self.begin()
        if not before or not self._begun:
            return {}
        faults, seconds = (now - was for now, was in zip(self._begun, before))
        return {"page_faults": faults, "system_seconds": seconds, "forks": forks}


page_faults = PageFaults()


def _used():
    """Page faults and seconds in the kernel; none if another thread than the one that trains asks."""
    if threading.get_ident() != ledger.owner:
        return None
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_minflt, usage.ru_stime


@record.careful
def measure():
    """What a fault costs, and how much memory it brings: more than a page if the kernel gives huge ones."""
    page = mmap.PAGESIZE
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    start = time.perf_counter()
    with mmap.mmap(-1, _BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for place in range(0, _BYTES, page):
            memory[place] = 1
        seconds = time.perf_counter() - start
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
    if faults:  # some sandboxes count none
        record.write("page_fault", seconds=seconds / faults, bytes=_BYTES / faults)


def watch(torch):
    os.register_at_fork(before=page_faults.forking)
