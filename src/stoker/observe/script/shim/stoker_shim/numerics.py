# SPDX-License-Identifier: Apache-2.0
"""Notes what makes a training wrong rather than slow: fp16 without a scaler, a scaler that skips steps, lost results."""

import ast
import functools
import linecache
import math
import sys
import time

from . import record, stacks
from .steps import steps

_CALLS = (20, 50, 100, 200, 500, 1000)  # of GradScaler.step(): then we look at the scale, which may wait for the device
_COPIES = ("to", "cuda", "cpu", "float", "half", "double", "bfloat16")
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
    """Looks for calls such as `x.to(device)` whose result nobody takes, in the functions that led to the step.

    A module moves in place. A tensor does not: the call returns a copy. If the source has such a call, one step of that
    function is traced line by line, to see whether it runs, and on what.
    """
    frame = sys._getframe(1)
    while frame is not None and sys.gettrace() is None:
        code = frame.f_code
        if stacks.is_own(code.co_filename):
            calls = {line: (value, name) for line, value, name in _dropped_calls(code)}
            if calls:
                _trace_step(torch, frame, calls)
                return
        frame = frame.f_back


def _trace_step(torch, frame, calls):
    until, end = steps.count + 1, time.monotonic() + _TRACED_SECONDS

    def on_line(frame, event, argument):
        if steps.count > until or event == "return" or time.monotonic() > end:
            frame.f_trace = None
            sys.settrace(None)
            return None
        if event == "line" and frame.f_lineno in calls:
            value, name = calls.pop(frame.f_lineno)
            _note_dropped(torch, frame, value, name)
        return on_line

    sys.settrace(lambda *call: None)  # other functions are not traced
    frame.f_trace = on_line


@record.careful
def _note_dropped(torch, frame, value, name):
    if isinstance(_value(value, frame), torch.Tensor):
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = linecache.getline(file, line).strip()
        record.write("dropped_result", name=name, where=stacks.where(file, line), text=text)


def _dropped_calls(code):
    """Line, object and method of the calls that stand alone in a function's source."""
    tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = [each for each in ast.walk(tree) if isinstance(each, functions) and _first_line(each) == code.co_firstlineno]
    nodes = _nodes(body[0] if body else tree, functions)
    for each in nodes:
        call = each.value if isinstance(each, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _COPIES:
            yield call.lineno, call.func.value, call.func.attr


def _first_line(function):
    return min([function.lineno] + [each.lineno for each in function.decorator_list])


def _nodes(root, functions):
    """All below it, but not inside of other functions."""
    for each in ast.iter_child_nodes(root):
        if not isinstance(each, functions):
            yield each
            yield from _nodes(each, functions)


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
