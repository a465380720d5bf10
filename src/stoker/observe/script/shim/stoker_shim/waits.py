# SPDX-License-Identifier: Apache-2.0
"""Notes, for some steps, the script's lines that read a value of the GPU, or copy to it so that the host waits."""

import functools
import linecache
import os
import sys
import threading
import time

from . import record, stacks
from .ledger import ledger
from .steps import steps

_KEPT = 30  # rows of a record
_READS = ("item", "cpu", "tolist", "__bool__", "__float__", "__int__", "__index__", "nonzero", "__repr__", "__format__")


class Waits:
    """From now on, until end().

    Calls of torch are seen by a TorchFunctionMode, which leaves tensors and their methods as they are. Modes end in the
    reverse order in which they began, so ours neither begins within one of the script's nor ends before it.
    """

    def __init__(self, torch):
        self._torch = torch
        self._process = os.getpid()
        self._inside = False
        self._rows = {}
        self._own = []  # (owner, name, function, what stands there now)
        self._begun, self._from = time.perf_counter(), steps.count
        for owner in (torch.cuda, torch.cuda.Stream, torch.cuda.Event):
            self._replace(owner, "synchronize")
        self._replace(torch.cuda, "empty_cache")
        self._mode = self._begin_mode()
        record.at_end(self._write)

    def _begin_mode(self):
        waits, overrides = self, self._torch.overrides
        if overrides._get_current_function_mode_stack():
            return None

        class Mode(overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return waits.call(function, args, kwargs or {})

        mode = Mode()
        mode.__enter__()
        return mode

    def end(self):
        """False if it must wait: for a mode of the script that began later."""
        stack = [] if self._mode is None else self._torch.overrides._get_current_function_mode_stack()
        if stack and stack[-1] is not self._mode:
            return False
        self._write()
        for owner, name, own, ours in self._own:
            if getattr(owner, name) is ours:
                setattr(owner, name, own)
        self._own = []
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
        return True

    def _write(self):
        if self._rows is not None and self._process == os.getpid():
            rows, self._rows = sorted(self._rows.values(), key=lambda each: -each["seconds"]), None
            if self._mode is not None:  # else the script has a mode of its own, and nothing was seen
                record.write("waits", steps=steps.count - self._from, seconds=time.perf_counter() - self._begun, rows=rows[:_KEPT])

    def _replace(self, owner, name):
        own = getattr(owner, name)

        @functools.wraps(own)
        def wrapper(*args, **kwargs):
            return self._timed(name, lambda result: name, own, args, kwargs)

        setattr(owner, name, wrapper)
        self._own.append((owner, name, own, wrapper))

    def call(self, function, args, kwargs):
        """Calls a function of torch, and notes it if it reads or copies."""
        name = getattr(function, "__name__", "")
        if name in _READS and args and self._is_on_gpu(args[0]):
            return self._timed(name, lambda result: "read", function, args, kwargs)
        if name in ("to", "cuda") and args:
            return self._timed(name, lambda result: self._copy_kind(args, result, kwargs), function, args, kwargs)
        return function(*args, **kwargs)

    def _is_on_gpu(self, tensor):
        try:
            with self._torch._C.DisableTorchFunctionSubclass():
                return bool(tensor.is_cuda)
        except Exception:
            return False

    def _copy_kind(self, args, result, kwargs):
        """ "to_gpu pageable blocking", "to_cpu"; empty if nothing was copied between host and GPU."""
        tensor = args[0]
        before, after = self._is_on_gpu(tensor), self._is_on_gpu(result)
        if before == after:
            return ""
        if before:
            return "to_cpu"
        waits = not (kwargs.get("non_blocking") or any(each is True for each in args[1:]))
        return f"to_gpu {'pinned' if tensor.is_pinned() else 'pageable'} {'blocking' if waits else 'async'}"

    def _timed(self, name, kind_of, own, args, kwargs):
        """A call inside of a noted call, as item() of print(tensor), counts with it."""
        if self._inside or threading.get_ident() != ledger.owner:
            return own(*args, **kwargs)
        self._inside = True
        start = time.perf_counter()
        try:
            result = own(*args, **kwargs)
        finally:
            self._inside = False
        self._note(name, kind_of, time.perf_counter() - start, result)
        return result

    @record.careful
    def _note(self, name, kind_of, seconds, result):
        kind = kind_of(result)
        if not kind or self._rows is None:
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
