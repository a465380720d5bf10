# SPDX-License-Identifier: Apache-2.0
"""Notes what makes a training wrong rather than slow: fp16 without a scaler, a scaler that skips steps, lost results."""

import ast
import functools
import linecache
import math
import re
import sys
import time

from . import record, stacks
from .steps import steps

_CALLS = (20, 50, 100, 200, 500, 1000)  # of GradScaler.step(): then we look at the scale, which may wait for the device
_COPIES = ("to", "cuda", "cpu", "float", "half", "double", "bfloat16")
_ALONE = re.compile(rf"^\s*[\w.\[\]'\"]+\.({'|'.join(_COPIES)})\(", re.MULTILINE)  # most files have none, and are not parsed
_TRACED_SECONDS = 10.0  # at most, if the loop ends meanwhile
_SMALLEST = 2.0**-149  # of a float32: a scale that was halved more often is 0
_AT = 2  # the step after which calls without a taken result are looked for


def watch(torch):
    from torch.amp import GradScaler

    GradScaler.step = _counted_step(GradScaler.step)
    torch.autocast.__enter__ = _noted_enter(torch, torch.autocast.__enter__)
    steps.on_step.append(lambda step: _watch_calls(torch) if step == _AT else None)


def _counted_step(own):
    @functools.wraps(own)
    def wrapper(self, *args, **kwargs):
        result = own(self, *args, **kwargs)
        _note_scale(self)
        return result

    return wrapper


@record.careful
def _note_scale(scaler):
    scaler._stoker_calls = calls = getattr(scaler, "_stoker_calls", 0) + 1
    if calls in _CALLS and scaler.is_enabled():
        halved = math.log(scaler._init_scale / max(scaler.get_scale(), _SMALLEST)) / -math.log(scaler.get_backoff_factor())
        record.write("scaler", calls=calls, skipped=max(halved, 0.0), scale=scaler.get_scale(), first=scaler._init_scale)


_dtypes = set()


def _noted_enter(torch, own):
    @functools.wraps(own)
    def wrapper(self):
        result = own(self)
        _note_autocast(torch, self)
        return result

    return wrapper


@record.careful
def _note_autocast(torch, autocast):
    kind = (autocast.device, str(autocast.fast_dtype))
    if kind not in _dtypes and autocast._enabled and torch.is_grad_enabled():
        _dtypes.add(kind)
        record.write("autocast", device=kind[0], dtype=kind[1])


@record.careful
def _watch_calls(torch):
    """Looks for calls such as `x.to(device)` whose result nobody takes, in all that a step runs of the script.

    A module moves in place. A tensor does not: the call returns a copy. If a file of the script has such a call, the
    functions of that file are traced line by line for one step, to see whether it runs, and on what.
    """
    chain, frame = [], sys._getframe(1)
    while frame is not None:
        chain.append(frame)
        frame = frame.f_back
    names = {each.f_code.co_filename for each in chain}
    names.update(getattr(each, "__file__", None) or "" for each in list(sys.modules.values()))
    files = {name: calls for name in names if stacks.is_own(name) and (calls := _dropped_calls(name))}
    if files and sys.gettrace() is None:
        _trace_step(torch, [each for each in chain if each.f_code.co_filename in files], files)


def _trace_step(torch, chain, files):
    until, end = steps.count + 1, time.monotonic() + _TRACED_SECONDS

    def on_call(frame, event, argument):
        return on_line if frame.f_code.co_filename in files else None

    def stop():
        if sys.gettrace() is on_call:
            sys.settrace(None)
        for each in chain:
            each.f_trace = None
        chain.clear()

    def on_line(frame, event, argument):
        if steps.count > until or (event == "return" and frame in chain) or time.monotonic() > end:
            stop()
            return None
        calls = files[frame.f_code.co_filename]
        if event == "line" and frame.f_lineno in calls:
            value, name = calls.pop(frame.f_lineno)
            _note_dropped(torch, frame, value, name)
        return on_line

    steps.on_step.append(lambda step: stop() if step == until + 1 else None)  # if none of their functions runs again
    sys.settrace(on_call)
    for each in chain:
        each.f_trace = on_line


@record.careful
def _note_dropped(torch, frame, value, name):
    if isinstance(_value(value, frame), torch.Tensor):
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = linecache.getline(file, line).strip()
        record.write("dropped_result", name=name, where=stacks.where(file, line), text=text)


def _dropped_calls(file):
    """Object and method of the calls that stand alone in a file's source, by line."""
    source = "".join(linecache.getlines(file))
    found = {}
    if _ALONE.search(source):
        for each in ast.walk(ast.parse(source)):
            call = each.value if isinstance(each, ast.Expr) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _COPIES:
                found[call.lineno] = (call.func.value, call.func.attr)
    return found


def _value(node, frame):
    """Of a name, or of an item of a named dictionary or list. None for all else: nothing is called."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
        owner = _value(node.value, frame)
        if type(owner) in (dict, list, tuple):
            try:
                return owner[node.slice.value]
            except (KeyError, IndexError, TypeError):
                return None
    return None
