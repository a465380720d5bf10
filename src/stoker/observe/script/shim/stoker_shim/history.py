# SPDX-License-Identifier: Apache-2.0
"""Finds a training that keeps the graphs of its steps, as `total += loss` does, or objects that only garbage collection
would free, which is off, and an evaluation that keeps its outputs: looks twice at what is alive."""

import ast
import contextlib
import gc
import linecache
import sys
import time

from . import record, stacks
from .ledger import ledger
from .steps import steps

_AT = (15, 40)  # steps after which we look
_DEEPEST = 2000
_MOST_TENSORS = 2000
_SOME = 3  # of those that are as deep: the oldest and the newest ones
_BATCHES = (10, 30)  # of an evaluation, after which we look


def watch(torch):
    before = {}

    @record.careful
    def look(step):
        if step in _AT:
            containers = None if gc.isenabled() else gc.get_count()[0]
            with _our_time():
                alive = {**_alive(torch), "containers": containers}
            if step == _AT[1]:
                _compare(before, alive)
            before.update(alive)

    steps.on_step.append(look)
    steps.on_fetch.append(_Evaluation(torch).at_batch)


@contextlib.contextmanager
def _our_time():
    """What happens inside is no time of the training."""
    start = time.perf_counter()
    ledger.enter("doctor")
    try:
        yield
    finally:
        ledger.leave()
        steps.own_seconds += time.perf_counter() - start


def _alive(torch):
    """Tensors with a graph: how many, and the depth of the deepest graph; the variable that holds it."""
    # By type(): isinstance() asks proxies for their __class__, and some answer with a warning.
    tensors = [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor) and not each.is_leaf]
    depths = [_depth(each) for each in tensors[:_MOST_TENSORS]]
    depth = max(depths, default=0)
    deepest = [each for each, own in zip(tensors, depths) if own == depth]
    name, where, kind = _holder(torch, deepest[:_SOME] + deepest[-_SOME:])
    return {"tensors": len(tensors), "depth": depth, "name": name, "where": where, "holder": kind}


def _holder(torch, tensors):
    """The variable that holds one of them: a list first, since the loss of this step is in a variable of its own, too."""

    def matches(value):
        return any(_holds(value, each) for each in tensors)

    name, where = _variable(lambda value: not issubclass(type(value), torch.Tensor) and matches(value))
    return (name, where, "list") if name else (*_variable(matches), "tensor")


def _depth(tensor):
    node, depth = tensor.grad_fn, 0
    while node is not None and depth < _DEEPEST:
        following = node.next_functions
        node = following[0][0] if following else None
        depth += 1
    return depth


def _variable(matches):
    """A variable of the script's functions whose value matches, and the line that adds to it, else its function's."""
    frame = sys._getframe(1)
    while frame is not None:
        if stacks.is_own(frame.f_code.co_filename):
            for name, value in list(frame.f_locals.items()):
                if matches(value):
                    return name, stacks.where(frame.f_code.co_filename, _adding_line(frame, name))
        frame = frame.f_back
    return "", ""


def _adding_line(frame, name):
    """The line of the frame's code that adds to the variable; of several, the nearest to the line that runs."""
    here = frame.f_lineno
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return here
    if frame.f_code.co_name != "<module>":
        first = frame.f_code.co_firstlineno
        tree = next((each for each in ast.walk(tree) if getattr(each, "name", "") == frame.f_code.co_name
                     and first in (each.lineno, *(line.lineno for line in each.decorator_list))), tree)
    lines = [each.lineno for each in ast.walk(tree) if _adds(each, name)]
    return min(lines, key=lambda line: abs(line - here), default=here)


def _adds(node, name):
    """name.append(x), name += x, name = name + x."""

    def is_it(each):
        return isinstance(each, ast.Name) and each.id == name

    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("append", "extend", "insert") and is_it(node.func.value)
    if isinstance(node, ast.AugAssign):
        return is_it(node.target)
    return isinstance(node, ast.Assign) and any(map(is_it, node.targets)) and any(map(is_it, ast.walk(node.value)))


def _compare(before, after):
    """Either one graph grows with each step, or there is one graph more with each step."""
    passed = _AT[1] - _AT[0]
    containers = before.get("containers"), after["containers"]
    record.write(
        "graphs",
        deeper_per_step=(after["depth"] - before.get("depth", 0)) / passed,
        more_per_step=(after["tensors"] - before.get("tensors", 0)) / passed,
        name=after["name"],
        where=after["where"],
        holder=after["holder"],
        **({} if None in containers else {"uncollected_per_step": (containers[1] - containers[0]) / passed}),
    )


class _Evaluation:
    """Counts an evaluation's batches, and looks at the tensors that each of them leaves behind."""

    def __init__(self, torch):
        self._torch = torch
        self._batches = self._written = 0
        self._before = self._kept = None

    @record.careful
    def at_batch(self):
        if not ledger.evaluates:
            self._write()
            self._batches = 0
            return
        self._batches += 1
        if self._kept is None and self._batches in _BATCHES:
            with _our_time():
                self._look()
        if self._batches % _BATCHES[1] == 0:
            self._write()  # memory may run out before it ends

    def _look(self):
        alive = _sizes(self._torch)
        if self._batches == _BATCHES[0]:
            self._before = alive
        else:
            passed = _BATCHES[1] - _BATCHES[0]
            name, where = _variable(lambda value: _has_many(self._torch, value, passed))
            self._kept = {
                "tensors_per_batch": (alive["tensors"] - self._before["tensors"]) / passed,
                "gpu_bytes_per_batch": (alive["gpu"] - self._before["gpu"]) / passed,
                "host_bytes_per_batch": (alive["host"] - self._before["host"]) / passed,
                "name": name,
                "where": where,
            }

    def _write(self):
        if self._kept is not None and self._batches > self._written and self._kept["tensors_per_batch"] >= 0.5:
            self._written = self._batches
            record.write("kept_outputs", batches=self._batches, **self._kept)


def _sizes(torch):
    """Storages of tensors: how many, and their bytes."""
    sizes, seen = {"tensors": 0, "gpu": 0, "host": 0}, set()
    for each in gc.get_objects():
        if type(each) in (torch.Tensor, torch.nn.Parameter) and each.layout == torch.strided:
            storage = each.untyped_storage()
            if storage._cdata not in seen:
                seen.add(storage._cdata)
                sizes["tensors"] += 1
                sizes["host" if each.device.type == "cpu" else "gpu"] += storage.nbytes()
    return sizes


def _holds(value, tensor):
    """Whether it is the tensor, or a list with it among its last elements."""
    return value is tensor or (type(value) is list and any(each is tensor for each in value[-_MOST_TENSORS:]))


def _has_many(torch, value, count):
    """Whether the value is a list with `count` elements or more, which are tensors, or tuples or dicts with tensors."""
    return type(value) is list and len(value) >= count and _has_tensor(torch, value[-1])


def _has_tensor(torch, value):
    inner = value.values() if type(value) is dict else value if type(value) in (list, tuple) else (value,)
    return any(issubclass(type(each), torch.Tensor) for each in inner)
