# SPDX-License-Identifier: Apache-2.0
"""Times what a training does beside fetching and computing: backward, zero_grad, checkpoints, evaluations, trackers, gc."""

import functools
import gc
import threading
import time
import weakref

from . import imports, record, stacks
from .ledger import ledger, timed


def watch(torch):
    torch.autograd.backward = timed("backward", torch.autograd.backward)
    torch.save = timed("checkpoint", torch.save)
    torch.optim.Optimizer.zero_grad = _zero_grad(timed("zero_grad", torch.optim.Optimizer.zero_grad))
    torch.nn.Module.train = _train(torch, torch.nn.Module.train)
    gc.callbacks.append(_collect)
    _time_all(torch.nn.DataParallel, ("replicate", "scatter", "gather"), "data_parallel")
    imports.after("safetensors.torch", lambda module: _time(module, "save_file", "checkpoint"))
    imports.after("torch.utils.tensorboard.writer", lambda module: _time_writer(module.SummaryWriter))
    imports.after("tensorboardX.writer", lambda module: _time_writer(module.SummaryWriter))
    for name in ("tensorboard.summary.writer.record_writer", "tensorboardX.record_writer"):
        imports.after(name, lambda module: _time_thread(module.RecordWriter))
    imports.after("wandb.sdk.wandb_run", lambda module: _time(module.Run, "log", "logging"))
    imports.after("torch._dynamo.convert_frame", lambda module: _time_all(module, ("_compile",), "compile"))
    imports.after("mlflow.tracking.fluent", lambda module: _time_all(module, ("log_metric", "log_metrics"), "logging"))


def _zero_grad(timed_zero_grad):
    noted = False

    @functools.wraps(timed_zero_grad)
    def wrapper(self, set_to_none=True):
        nonlocal noted
        if not set_to_none and not noted:
            noted = True
            record.write("zero_grad", where=stacks.caller())
        return timed_zero_grad(self, set_to_none)

    return wrapper


def _time(owner, name, part):
    setattr(owner, name, timed(part, getattr(owner, name)))


def _time_all(owner, names, part):
    for name in names:
        if hasattr(owner, name):
            _time(owner, name, part)


def _time_writer(writer):
    _time_all(writer, [name for name in dir(writer) if name.startswith("add_") or name == "flush"], "logging")


def _time_thread(writer):
    """A tracker's own thread checks and writes what was logged. While it computes, it has Python's lock."""
    own = writer.write

    @functools.wraps(own)
    def wrapper(self, *args, **kwargs):
        start = time.thread_time()
        try:
            return own(self, *args, **kwargs)
        finally:
            if threading.get_ident() != ledger.owner:
                ledger.tracker_seconds += time.thread_time() - start

    writer.write = wrapper


def _collect(phase, info):
    if phase == "start":
        loading = ledger.doing == "fetch" or ledger.doing.startswith("loader.")
        ledger.enter("loader_gc" if loading else "gc")
    else:
        ledger.leave()


_evaluating = None  # the module whose eval() began an evaluation, a weak reference


def _train(torch, own):
    @functools.wraps(own)
    def wrapper(self, mode=True):
        _mode_changed(torch, self, mode)
        return own(self, mode)

    return wrapper


@record.careful
def _mode_changed(torch, module, mode):
    global _evaluating
    if threading.get_ident() != ledger.owner:
        return
    known = None if _evaluating is None else _evaluating()
    if not mode and ledger.trains and known is None and module.training:
        _evaluating = weakref.ref(module)
        ledger.begin_evaluation()
        _note_gradients(torch, module)
    elif mode and known is module:
        _evaluating = None
        ledger.end_evaluation()
        _end_hook()


_noted = set()  # whether gradients were on
_hook = None  # that waits for the next call of the evaluated module


def _note_gradients(torch, module):
    """Whether the next call of the module, in evaluation, records a graph.

    By a hook of all modules, which is gone after that call: one of the module's own would be pickled with it.
    """
    global _hook
    wanted = weakref.ref(module)

    @record.careful
    def hook(called, inputs):
        if called is wanted():
            _end_hook()
            grad = torch.is_grad_enabled() and any(each.requires_grad for each in called.parameters())
            if grad not in _noted:
                _noted.add(grad)
                record.write("evaluation", gradients=grad, where=stacks.caller())

    _end_hook()
    _hook = torch.nn.modules.module.register_module_forward_pre_hook(hook)


def _end_hook():
    global _hook
    if _hook is not None:
        _hook.remove()
        _hook = None
