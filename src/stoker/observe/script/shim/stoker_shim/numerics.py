# SPDX-License-Identifier: Apache-2.0
"""Notes what makes a training wrong rather than slow: fp16 without a scaler, a scaler that skips steps, lost results."""

import ast
import functools
import linecache
import sys

from . import record, stacks
from .steps import steps

_CALLS = (20, 50, 100, 200, 500, 1000)  # of GradScaler.step(): then we look at the scale, which may wait for the device
_COPIES = ("to", "cuda", "cpu", "float", "half", "double", "bfloat16")
_AT = 2  # the step after which calls without a taken result are looked for


def watch(torch):
    from torch.amp import GradScaler

    GradScaler.step = _counted_step(GradScaler.step)
    torch.autocast.__enter__ = _noted_enter(torch, torch.autocast.__enter__)
    steps.on_step.append(lambda step: _note_dropped(torch) if step == _AT else None)


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
        record.write("scaler", calls=calls, steps=steps.count, scale=scaler.get_scale())


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
def _note_dropped(torch):
    """Calls such as `x.to(device)` whose result nobody takes, in the functions that led to the step.

    A module moves in place. A tensor does not: the call returns a copy.
    """
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if stacks.is_own(code.co_filename):
            for line, value, name in _dropped_calls(code.co_filename, code.co_firstlineno):
                if isinstance(_value(value, frame), torch.Tensor):
                    record.write(
                        "dropped_result",
                        name=name,
                        where=stacks.where(code.co_filename, line),
                        text=linecache.getline(code.co_filename, line).strip(),
                    )
        frame = frame.f_back


def _dropped_calls(file, first_line):
    """Line, object and method of the calls that stand alone, in the function that starts at a line of a file."""
    tree = ast.parse("".join(linecache.getlines(file)))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = [each for each in ast.walk(tree) if isinstance(each, functions) and _first_line(each) == first_line]
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
