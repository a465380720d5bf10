# SPDX-License-Identifier: Apache-2.0
"""The time of the thread that trains, divided into parts that exclude each other."""

import functools
import threading
import time

OTHER, EVALUATION = "other", "evaluation"


class Ledger:
    """Calls from other threads do nothing. A part inside an evaluation counts as evaluation, but for our own looks."""

    def __init__(self):
        self.owner = threading.main_thread().ident
        self.trains = False  # a step of an optimizer was seen: only then an evaluation is a pause
        self.on_pause = lambda: None  # called when an evaluation or a checkpoint begins
        self.stage = ""  # "samples" or "collate" while this process loads; "waiting" in a worker that has nothing to do
        self.begin()

    def adopt(self):
        """This thread is the one that trains."""
        self.owner = threading.get_ident()
        self.trains = True

    def begin(self):
        """Forgets the time so far."""
        self.tracker_seconds = 0.0  # on a core, of a tracker's own thread
        self.parts = {}  # name: [seconds, seconds on a core, times entered]
        self._stack = [OTHER]
        self._now = time.perf_counter()
        self._cpu = time.thread_time()
        self._before_evaluation = None

    @property
    def doing(self):
        """What the process does now: "backward", "loader.samples"."""
        return "loader." + self.stage if self.stage else self._stack[-1]

    @property
    def evaluates(self):
        return self._stack[0] == EVALUATION

    def enter(self, part):
        if threading.get_ident() == self.owner:
            if part == "checkpoint":
                self.on_pause()
            self._book()
            self._stack.append(EVALUATION if self._stack[0] == EVALUATION and part != "doctor" else part)
            self._spent()[2] += 1

    def leave(self):
        if threading.get_ident() == self.owner and len(self._stack) > 1:
            self._book()
            self._stack.pop()

    def take(self):
        """The parts since the last call."""
        self._book()
        parts, self.parts = self.parts, {}
        return parts

    def take_tracker_seconds(self):
        seconds, self.tracker_seconds = self.tracker_seconds, 0.0
        return seconds

    def begin_evaluation(self):
        if self.trains and threading.get_ident() == self.owner and self._stack == [OTHER]:
            self.on_pause()
            self._book()
            self._before_evaluation = list(self.parts.get(EVALUATION, (0.0, 0.0, 0)))
            self._stack[0] = EVALUATION

    def end_evaluation(self, real=True):
        """Not real: a step followed, so it was a module that never trains. Its time goes to other."""
        if self._stack[0] != EVALUATION or threading.get_ident() != self.owner:
            return
        self._book()
        if not real:
            spent = self.parts.pop(EVALUATION, [0.0, 0.0, 0])
            other = self.parts.setdefault(OTHER, [0.0, 0.0, 0])
            for i, before in enumerate(self._before_evaluation):
                other[i] += spent[i] - before
            if any(self._before_evaluation):
                self.parts[EVALUATION] = self._before_evaluation
        self._stack = [OTHER if each == EVALUATION else each for each in self._stack]

    def _spent(self):
        return self.parts.setdefault(self._stack[-1], [0.0, 0.0, 0])

    def _book(self):
        now, cpu = time.perf_counter(), time.thread_time()
        spent = self._spent()
        spent[0] += now - self._now
        spent[1] += cpu - self._cpu
        self._now, self._cpu = now, cpu


ledger = Ledger()


def timed(part, function):
    """The function, with its time in that part."""

    enter, leave = ledger.enter, ledger.leave

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            enter(part)
        except Exception:  # Python is ending, and takes its modules apart
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            leave()

    return wrapper
