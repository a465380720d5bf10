# SPDX-License-Identifier: Apache-2.0
"""Looks, for a few seconds, at the line that a thread runs: where the time inside a part of a step goes.

A second thread reads the stack of the first one a hundred times a second. Code without Python frames (a kernel, a
decoder in C) counts for the line that called it. Both threads share the interpreter's lock, so within a millisecond a
look favours the lines that give it up. calls.py tells such short calls apart.
"""

import linecache
import os
import sys
import sysconfig
import threading
import time

from . import record
from .ledger import ledger
from .steps import steps

_EACH = 0.01  # seconds between two looks
_LOOKS, _MOST_SECONDS = 200, 20.0
_FIRST, _STEPS = 2, 20  # sampling starts after this step, and lasts for at least so many
_KEPT = 30  # sites of a record
_OWN = os.path.dirname(os.path.realpath(__file__))


class Looks:
    """Looks at the thread that makes it, until it saw enough."""

    def __init__(self, enough=lambda: True):
        self._enough = enough
        self._target = threading.get_ident()
        self._counts = {}
        self._looks = 0
        self._process = os.getpid()
        self._written = False
        record.at_end(self._write)  # of a short training
        self._thread = threading.Thread(target=self._run, name="stoker-looks", daemon=True)
        self._thread.start()

    @record.careful
    def _run(self):
        start = time.monotonic()
        while (self._looks < _LOOKS or not self._enough()) and time.monotonic() - start < _MOST_SECONDS:
            time.sleep(_EACH)
            if steps.paused:
                continue
            frame = sys._current_frames().get(self._target)
            if frame is None:
                break
            site = (ledger.doing, *site_of(frame))
            self._counts[site] = self._counts.get(site, 0) + 1
            self._looks += 1
            del frame
        self._write()

    def _write(self):
        if self._written or self._looks == 0 or self._process != os.getpid():
            return
        self._written = True
        most = sorted(self._counts.items(), key=lambda each: -each[1])[:_KEPT]
        sites = [
            {
                "part": part,
                "where": where(file, line),
                "function": function,
                "text": linecache.getline(file, line).strip()[:200] if file else "",
                "module": module,
                "looks": count,
            }
            for (part, file, line, function, module), count in most
        ]
        record.write("sites", looks=self._looks, sites=sites)


def watch(torch):
    def begin(step):
        if step == _FIRST:
            Looks(lambda: steps.count >= _FIRST + _STEPS)

    steps.on_step.append(begin)


def site_of(frame):
    """File, line and function of the script's innermost line, and the module that it called."""
    module = _module(frame)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_own(name):
            own = frame.f_globals.get("__name__")
            return name, frame.f_lineno, frame.f_code.co_name, "" if module == own else module
        frame = frame.f_back
    return "", 0, "", module


@record.careful
def caller():
    """The line of the script that led to this call: "train.py:12"; empty if there is none."""
    file, line, _, _ = site_of(sys._getframe(1))
    return where(file, line)


def where(file, line):
    """ "train.py:12"; empty without a file."""
    if not file:
        return ""
    path = os.path.relpath(file)
    return f"{os.path.realpath(file) if path.startswith(os.pardir) else path}:{line}"


_known = {}  # whether a file is the script's own


def is_own(file):
    known = _known.get(file)
    if known is None:
        path = os.path.realpath(file) if not file.startswith("<") else ""  # "<frozen abc>"
        known = _known[file] = (
            any(path.startswith(each) for each in _own_folders())
            and not path.startswith(_OWN)
            and not any(each in path for each in ("/site-packages/", "/dist-packages/"))
            and not any(path.startswith(each) for each in _library_folders())
        )
    return known


def _module(frame):
    """The innermost module that is not this one."""
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return "" if frame is None else frame.f_globals.get("__name__") or ""


def _own_folders():
    """Where the script's own files are: its folder, and the working directory."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    folders = [os.getcwd()] + ([os.path.dirname(os.path.realpath(main))] if main else [])
    return [os.path.join(os.path.realpath(each), "") for each in folders]


def _library_folders():
    paths = sysconfig.get_paths()
    return [os.path.join(os.path.realpath(paths[each]), "") for each in ("stdlib", "platstdlib")]
