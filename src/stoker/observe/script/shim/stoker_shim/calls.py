# SPDX-License-Identifier: Apache-2.0
"""Which libraries the time goes to: Python's own profiler (cProfile) watches three batches and three steps.

It is exact for calls that take microseconds, where looks at a running line (stacks.py) favour those that give up the
interpreter's lock. It does nothing while another profiler is on.
"""

import cProfile
import os
import re
import sys
import time

from . import record, stacks
from .steps import steps

_KEPT = 20  # rows of a record
_OWN = os.path.dirname(os.path.realpath(__file__))
_BUILTIN = re.compile(r"of '([\w.]+)'|built-in method ([\w.]+)")
_PLAIN = {"builtins", "dict", "list", "tuple", "str", "int", "float", "set", "type", "object", "function", "time"}


class Calls:
    """Collects between begin() and end(), which may be called many times, on one thread."""

    def __init__(self):
        self._profile = None
        self._on = False

    @record.careful
    def begin(self):
        if sys.getprofile() is None and not self._on:
            self._profile = self._profile or cProfile.Profile()
            self._profile.enable()
            self._on = True

    @record.careful
    def end(self):
        if self._on:
            self._on = False
            self._profile.disable()

    @record.careful
    def write(self, part, seconds):
        """seconds: of wall time between all begin() and end()."""
        if self._profile is not None:
            rows = _rows(self._profile.getstats())
            record.write("calls", part=part, seconds=seconds, rows=rows)
            self._profile = None


_STEPS = (6, 9)  # the training's calls are watched from the end of one step to that of another


def watch(torch):
    calls, start = Calls(), 0.0

    def at_step(step):
        nonlocal start
        if step == _STEPS[0]:
            start = time.perf_counter()
            calls.begin()
        elif step == _STEPS[1]:
            calls.end()
            calls.write("step", time.perf_counter() - start)

    steps.on_step.append(at_step)


def _rows(stats):
    """Seconds by the library that the script's own code calls, and the function of the script that calls it."""
    seconds = {}

    def add(library, caller, spent):
        key = (library, caller)
        seconds[key] = seconds.get(key, 0.0) + spent

    inside = {}  # seconds of a function that other functions account for
    for entry in stats:
        for each in entry.calls or ():
            inside[each.code] = inside.get(each.code, 0.0) + each.totaltime
    for entry in stats:
        own = _is_own(entry.code)
        caller = _name(entry.code) if own else ""
        if own:
            add("", caller, entry.inlinetime)
            for each in entry.calls or ():
                if not _is_own(each.code):
                    add(_library(each.code), caller, each.totaltime)
        outside = entry.totaltime - inside.get(entry.code, 0.0)  # called by what was running when we began
        if not own and outside > 0:
            add(_library(entry.code), "", outside)
    _leave_out_torch(stats, seconds)
    most = sorted(seconds.items(), key=lambda each: -each[1])[:_KEPT]
    return [{"library": key[0], "caller": key[1], "seconds": spent} for key, spent in most]


def _leave_out_torch(stats, seconds):
    """A framework that runs the training (Lightning, transformers) spends its time in torch and in the script's functions.

    From libraries that lead there, that time is taken off: what remains is their own.
    """
    calls, beneath = {}, 0.0  # the libraries that a library calls; seconds in torch and in own functions, below libraries
    for entry in stats:
        library = "" if _is_own(entry.code) else _library(entry.code)
        if library in ("", "torch"):
            continue
        for each in entry.calls or ():
            callee = "" if _is_own(each.code) else _library(each.code)
            if library != "python":  # next(loader) leads to torch; that does not make each caller of next() a framework
                calls.setdefault(library, set()).add(callee)
            if callee in ("", "torch"):
                beneath += each.totaltime
    leading = {"", "torch"}  # libraries from which a way leads to torch or to the script
    while True:
        more = {library for library, called in calls.items() if called & leading} - leading
        if not more:
            break
        leading |= more
    leading -= {"", "torch"}
    whole = sum(spent for (library, _), spent in seconds.items() if library in leading)
    for key in [each for each in seconds if each[0] in leading]:
        seconds[key] *= max(1 - beneath / whole, 0.0) if whole > 0 else 0.0


def _is_own(code):
    return not isinstance(code, str) and stacks.is_own(code.co_filename)


def _name(code):
    return f"{code.co_name} ({stacks.where(code.co_filename, code.co_firstlineno)})"


def _library(code):
    """The first part of the module's name; "python" for what belongs to the language."""
    if isinstance(code, str):
        found = _BUILTIN.search(code)
        name = (found[1] or found[2]).split(".")[0] if found else "python"
        return "python" if name in _PLAIN else name
    if code.co_filename.startswith(_OWN):
        return "python"
    return _package(code.co_filename)


_packages = {}  # file: package


def _package(file):
    if file not in _packages:
        path = os.path.realpath(file)
        folders = sorted((os.path.realpath(each) for each in sys.path if each), key=len, reverse=True)
        base = next((each for each in folders if path.startswith(each + os.sep)), "")
        _packages[file] = os.path.relpath(path, base or os.sep).split(os.sep)[0].removesuffix(".py")
    return _packages[file]
