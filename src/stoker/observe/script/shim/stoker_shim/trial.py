# SPDX-License-Identifier: Apache-2.0
"""Tries a change in a script that stays as it is, for `stoker doctor --try`, and measures the speed of its steps.

STOKER_DOCTOR_TRIAL holds JSON: "changes", each with its "option" as one would write it ("num_workers=4, gc.freeze()") and the place of
its DataLoader ("train.py:14", or "" for all); "steps" to measure; "seconds", the most that they may take; "watch", whether
everything is recorded besides. The result is measured.json in the folder for records, of the process that is first.
"""

import ast
import ctypes
import functools
import gc
import inspect
import json
import os
import re
import sys
import time

from . import loader, record, stacks
from .steps import steps

_WARM_STEPS, _WARM_SECONDS = 10, 20.0  # at the start, unmeasured: caches fill, libraries choose their ways
_FEWEST = 3  # steps of a measurement that runs out of time
_SHORT = 10  # steps of one whose script ends before
_BETWEEN = re.compile(r", (?=[\w.]+[=(])| (?=MALLOC_)")  # two options

_refused = []  # changes that could not be made, with the reason


def wanted():
    """What to try; None in any other run."""
    try:
        return json.loads(os.environ.get("STOKER_DOCTOR_TRIAL", "null"))
    except ValueError as error:
        record.trouble("trial", error)


def apply(torch, changes):
    """Makes the changes. One that this torch does not allow is noted: then the trial tells nothing."""
    for change in changes:
        for option in _BETWEEN.split(change["option"]):
            try:
                name, value = _parsed(option)
                _WAYS[name](torch, name, value, change["where"])
            except Exception as error:
                _refused.append(f"{option}: {type(error).__name__}: {error}")


def measure(count, seconds):
    """Writes the speed after `count` steps or `seconds`, or at the end of a script that has fewer steps."""
    process = os.getpid()  # a worker that was forked from it measures nothing
    begun = None  # time of the first step
    first = None  # number and time of the step with which the measurement starts
    last = None  # of the step that ended last
    done = False

    @record.careful
    def look(step):
        nonlocal begun, first, last, done
        now = time.monotonic()
        begun = begun or now
        last = (step, now)
        if done or (steps.optimizer is None and now - begun < _WARM_SECONDS):
            return  # batches without an optimizer: the script may only look at its data first
        if first is None or step < first[0]:
            # What workers have made beforehand comes for nothing.
            warm = step >= _WARM_STEPS + loader.ahead or (now - begun > _WARM_SECONDS and step >= 2)
            first = (step, now) if warm else None
        elif step - first[0] >= count or (now - first[1] > seconds and step - first[0] >= _FEWEST):
            done = True
            _write(step - first[0], now - first[1])

    def end():
        if os.getpid() == process and first is not None and not done and last[0] - first[0] >= _SHORT:
            _write(last[0] - first[0], last[1] - first[1])

    steps.on_step.append(look)
    record.at_end(end)


def _write(count, seconds):
    path = os.path.join(os.environ["STOKER_DOCTOR_RECORDS"], "measured.json")
    with open(f"{path}.{os.getpid()}", "x", encoding="utf-8") as file:
        json.dump({"steps": count, "seconds": seconds, "refused": _refused}, file)
    try:
        os.link(file.name, path)  # another rank may have been first
    except FileExistsError:
        pass


def _parsed(option):
    """'num_workers=4' or 'gc.freeze()': the name, and the value or None."""
    name, assigned, called = re.fullmatch(r"([\w.]+)(?:=(.*)|\((.*)\))", option).groups()
    text = assigned or called
    try:
        return name, ast.literal_eval(text) if text else None
    except ValueError:
        return name, text  # a lambda


def _with_arguments(function, replace):
    """The function with the arguments that replace(arguments) has changed; defaults are among them."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        replace(bound.arguments)
        return function(*bound.args, **bound.kwargs)

    return wrapper


def _loader_argument(torch, name, value, where):
    def replace(arguments):
        if where in ("", stacks.caller()):
            arguments[name] = value
            if not arguments["num_workers"]:
                arguments.update(prefetch_factor=None, persistent_workers=False, timeout=0)

    loader = torch.utils.data.DataLoader
    loader.__init__ = _with_arguments(loader.__init__, replace)


_threads = {"training": None, "workers": None}  # numbers that replace the script's; None: as it says


def _set_threads(torch):
    """A worker of a DataLoader, forked or not, is one from its own first call on."""
    own, is_worker = torch.set_num_threads, False

    @functools.wraps(own)
    def set_num_threads(count):
        nonlocal is_worker
        is_worker = is_worker or sys._getframe(1).f_globals.get("__name__") == "torch.utils.data._utils.worker"
        own(_threads["workers" if is_worker else "training"] or count)

    if not hasattr(own, "__wrapped__"):
        torch.set_num_threads = set_num_threads


def _one_thread_per_worker(torch, name, value, where):
    _threads["workers"] = 1
    _set_threads(torch)


def _training_threads(torch, name, value, where):
    _threads["training"] = value
    _set_threads(torch)
    torch.set_num_threads(value)


def _fused(torch, name, value, where):
    def replace(arguments):
        if not arguments["fused"]:
            arguments.update(fused=value, foreach=None)

    for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad):
        if "fused" in inspect.signature(kind.__init__).parameters:
            kind.__init__ = _with_arguments(kind.__init__, replace)


def _set_to_none(torch, name, value, where):
    for kind in (torch.optim.Optimizer, torch.nn.Module):
        kind.zero_grad = _with_arguments(kind.zero_grad, lambda arguments: arguments.update(set_to_none=value))


def _freeze(torch, name, value, where):
    def freeze(step):
        if step == 1:
            gc.collect()
            gc.freeze()

    steps.on_step.append(freeze)


def _no_anomaly(torch, name, value, where):
    torch.set_anomaly_enabled = lambda mode, check_nan=True: None


def _dynamic(torch, name, value, where):
    torch.compile = _with_arguments(torch.compile, lambda arguments: arguments.update(dynamic=value))


def _channels_last(torch, name, value, where):
    from torch.optim import optimizer

    done = []

    @record.careful
    def convert(own, args, kwargs):
        if not done:
            done.append(True)
            for each in (each for group in own.param_groups for each in group["params"]):
                if each.dim() == 4:
                    each.data = each.data.to(memory_format=torch.channels_last)
                    if each.grad is not None:  # a fused optimizer wants both in one layout
                        each.grad = each.grad.to(memory_format=torch.channels_last)

    optimizer.register_optimizer_step_pre_hook(convert)


def _matmul_precision(torch, name, value, where):
    torch.set_float32_matmul_precision(value)
    torch.set_float32_matmul_precision = lambda precision: None


def _cudnn_benchmark(torch, name, value, where):
    torch.backends.cudnn.benchmark = value


def _mallopt(torch, name, value, where):
    """As the C library does at the start of a program with this in its environment."""
    parameter, largest = _MALLOPT[name], 2**31 - 1
    if not ctypes.CDLL(None).mallopt(parameter, value if value <= largest else -1):  # -1: without a limit
        raise OSError("the C library refused it")


_MALLOPT = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_MAX_": -4}  # M_TRIM_THRESHOLD, M_MMAP_MAX of malloc.h

_WAYS = {
    "num_workers": _loader_argument,
    "persistent_workers": _loader_argument,
    "pin_memory": _loader_argument,
    "worker_init_fn": _one_thread_per_worker,
    "fused": _fused,
    "set_to_none": _set_to_none,
    "dynamic": _dynamic,
    "gc.freeze": _freeze,
    "torch.set_num_threads": _training_threads,
    "torch.autograd.set_detect_anomaly": _no_anomaly,
    "memory_format": _channels_last,
    "torch.set_float32_matmul_precision": _matmul_precision,
    "torch.backends.cudnn.benchmark": _cudnn_benchmark,
    "MALLOC_TRIM_THRESHOLD_": _mallopt,
    "MALLOC_MMAP_MAX_": _mallopt,
}
