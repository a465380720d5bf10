# SPDX-License-Identifier: Apache-2.0
"""Which libraries the time goes to: Python's own profiler (cProfile) watches three batches and three steps.

It is exact for calls that take microseconds, where looks at a running line (stacks.py) favour those that give up the
interpreter's lock. It does nothing while another profiler is on. From CPython 3.12 on cProfile mixes the calls of all
threads, so there a hook of one thread collects the same.
"""

import cProfile
import os
import re
import sys
import time
import types

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
        if not self._on and not _another_profiles():
            self._profile = self._profile or (ThreadProfile() if sys.version_info >= (3, 12) else cProfile.Profile())
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


def _another_profiles():
    monitoring = getattr(sys, "monitoring", None)
    return sys.getprofile() is not None or (monitoring is not None and monitoring.get_tool(monitoring.PROFILER_ID) is not None)


class ThreadProfile:
    """What cProfile.Profile collects, of the thread that enables it. Without the time that the hook itself takes."""

    def __init__(self):
        self._stack = []  # of the calls that run: [entry, start, seconds in what it called]
        self._own = 0.0  # seconds of the hook so far, as far as they count for calls
        self._per_call = 0.0
        self._per_call = self._measured()
        self._entries = {}  # by code object, or by the name of a built-in function

    def _measured(self):
        """Seconds that the hook adds to a call."""
        self._entries = {}
        seconds = []
        for hook in (None, self._on_event):
            sys.setprofile(hook)
            start = time.perf_counter()
            for _ in range(300):
                _nothing()
            seconds.append(time.perf_counter() - start)
        self.disable()
        return max(seconds[1] - seconds[0], 0.0) / 300

    def enable(self):
        self._stack = []
        sys.setprofile(self._on_event)

    def disable(self):
        if sys.getprofile() == self._on_event:
            sys.setprofile(None)
        while self._stack:
            self._leave()

    def getstats(self):
        return list(self._entries.values())

    def _on_event(self, frame, event, argument):
        try:
            if event == "call":
                self._enter(id(frame.f_code), frame.f_code)
            elif event == "c_call":
                name = _builtin_name(argument)
                self._enter(name, name)
            elif self._stack:  # else a function returns that ran when we began
                self._leave()
        except Exception:  # of an odd object's attribute; it may not reach the script
            self._stack = []

    def _enter(self, key, code):
        entry = self._entries.get(key)
        if entry is None:
            entry = types.SimpleNamespace(key=key, code=code, totaltime=0.0, inlinetime=0.0, calls=[], by_key={}, running=0)
            self._entries[key] = entry
        entry.running += 1
        self._stack.append([entry, time.perf_counter() - self._own, 0.0])

    def _leave(self):
        entry, start, inside = self._stack.pop()
        seconds = max(time.perf_counter() - self._own - start, 0.0)
        self._own += self._per_call
        entry.inlinetime += seconds - inside
        entry.running -= 1
        if entry.running == 0:  # of calls of itself the outermost counts
            entry.totaltime += seconds
        if self._stack:
            self._stack[-1][2] += seconds
            caller = self._stack[-1][0]
            call = caller.by_key.get(entry.key)
            if call is None:
                call = caller.by_key[entry.key] = types.SimpleNamespace(code=entry.code, totaltime=0.0)
                caller.calls.append(call)
            call.totaltime += seconds


def _nothing():
    pass


def _builtin_name(function):
    """As cProfile names it: "<built-in method numpy.array>", "<method 'item' of 'torch._C.TensorBase' objects>"."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        module = getattr(function, "__module__", None) or getattr(owner, "__name__", "")
        return f"<built-in method {module}.{function.__name__}>" if module else f"<built-in method {function.__name__}>"
    kind = type(owner)
    return f"<method '{function.__name__}' of '{kind.__module__}.{kind.__qualname__}' objects>"


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
