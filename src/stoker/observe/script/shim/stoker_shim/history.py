# SPDX-License-Identifier: Apache-2.0
"""Finds a training that keeps the graphs of its steps, as `total += loss` does, or objects that only garbage collection
would free, which is off: looks twice at what is alive."""

import gc
import sys
import time

from . import record, stacks
from .ledger import ledger
from .steps import steps

_AT = (15, 40)  # steps after which we look
_DEEPEST = 2000
_MOST_TENSORS = 2000


def watch(torch):
    before = {}

    @record.careful
    def look(step):
        if step in _AT:
            start = time.perf_counter()
            ledger.enter("doctor")
            containers = None if gc.isenabled() else gc.get_count()[0]
            try:
                alive = {**_alive(torch), "containers": containers}
            finally:
                ledger.leave()
                steps.own_seconds += time.perf_counter() - start
            if step == _AT[1]:
                _compare(before, alive)
            before.update(alive)

    steps.on_step.append(look)


def _alive(torch):
    """Tensors with a graph: how many, and the depth of the deepest graph; the variable that holds it."""
    # By type(): isinstance() asks proxies for their __class__, and some answer with a warning.
    tensors = [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor) and not each.is_leaf]
    depths = [(_depth(each), i) for i, each in enumerate(tensors[:_MOST_TENSORS])]
    depth, index = max(depths, default=(0, None))
    name, where = ("", "") if index is None else _holder(tensors[index])
    return {"tensors": len(tensors), "depth": depth, "name": name, "where": where}


def _depth(tensor):
    node, depth = tensor.grad_fn, 0
    while node is not None and depth < _DEEPEST:
        following = node.next_functions
        node = following[0][0] if following else None
        depth += 1
    return depth


def _holder(tensor):
    """The variable of the script's functions that holds it."""
    frame = sys._getframe(1)
    while frame is not None:
        if stacks.is_own(frame.f_code.co_filename):
            for name, value in list(frame.f_locals.items()):
                if value is tensor:
                    return name, stacks.where(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return "", ""


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
        **({} if None in containers else {"uncollected_per_step": (containers[1] - containers[0]) / passed}),
    )
