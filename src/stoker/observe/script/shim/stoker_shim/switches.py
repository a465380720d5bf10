# SPDX-License-Identifier: Apache-2.0
"""Notes once, after a few steps, what is switched on or off in the process: flags, threads, optimizer, environment, and
biases of convolutions that a norm takes away again."""

import functools
import gc
import os
import sys

from . import record, stacks
from .steps import steps

_AT = (3, 40)  # steps after which we look
_LAYERS = 4  # the step after which the calls of layers are watched, for one step
_ENVIRONMENT = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_DISTRIBUTED_DEBUG",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUBLAS_WORKSPACE_CONFIG",
    "PYTHONMALLOC",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "PYTHONDEVMODE",
)


def watch(torch):
    before = {}

    @record.careful
    def look(step):
        nonlocal before
        if step in _AT:
            now = _switches(torch)
            if now != before:
                before = now
                record.write("switches", step=step, **now)

    steps.on_step.append(look)
    steps.on_step.append(_Layers(torch).at_step)
    torch.optim.Optimizer.__init__ = _noted_init(torch.optim.Optimizer.__init__)


def _noted_init(own):
    @functools.wraps(own)
    def wrapper(self, *args, **kwargs):
        self._stoker_where = stacks.caller()
        own(self, *args, **kwargs)

    return wrapper


def _switches(torch):
    backends, autograd = torch.backends, torch.autograd
    return {
        "python": sys.executable,
        "main": stacks.where(getattr(sys.modules.get("__main__"), "__file__", None), 0),
        "threads": torch.get_num_threads(),
        "cudnn_benchmark": backends.cudnn.benchmark,
        "cudnn_deterministic": backends.cudnn.deterministic,
        "cudnn_tf32": _value(lambda: backends.cudnn.allow_tf32),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "fill_uninitialized": torch.utils.deterministic.fill_uninitialized_memory,
        "anomaly": torch.is_anomaly_enabled(),
        "profiler": _value(autograd._profiler_enabled),
        "gc": gc.isenabled(),
        "gc_threshold": gc.get_threshold(),
        "cuda": _value(lambda: torch.cuda.is_initialized() and torch.cuda.get_device_name()),
        "optimizer": _optimizer(torch, steps.optimizer and steps.optimizer()),
        "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    }


def _value(function):
    try:
        return function()
    except Exception:
        return None


def _optimizer(torch, optimizer):
    if optimizer is None:
        return None
    tensors = [each for group in optimizer.param_groups for each in group["params"]]
    elements = sum(each.numel() for each in tensors)
    doubles = sum(each.numel() for each in tensors if each.dtype == torch.float64)
    filters = [each for each in tensors if each.dim() == 4 and each[0, 0].numel() > 1]
    return {
        "name": type(optimizer).__name__,
        "where": getattr(optimizer, "_stoker_where", ""),
        "fused": optimizer.defaults.get("fused"),
        "foreach": optimizer.defaults.get("foreach"),
        "tensors": len(tensors),
        "elements": elements,
        "float64_elements": doubles,
        "devices": sorted({str(each.device) for each in tensors}),
        "dtypes": sorted({str(each.dtype) for each in tensors}),
        "filters": len(filters),
        "filters_channels_last": sum(not each.is_contiguous() for each in filters),
    }


def _compiled():
    """Whether torch.compile has compiled something."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and dynamo.counters["frames"]["total"] > 0


class _Layers:
    """Which convolutions with a bias give their output to a norm, whose mean takes the bias away. By hooks of all modules
    for one step: a module's own would be pickled with it. None while `torch.compile` is used, which looks at hooks."""

    def __init__(self, torch):
        self._torch = torch
        self._hook = None
        self._last = None  # the last convolution's output, and whether it has a bias
        self._convolutions = self._biased = 0

    @record.careful
    def at_step(self, step):
        if step == _LAYERS and not _compiled():
            self._hook = self._torch.nn.modules.module.register_module_forward_hook(self._called)
        elif self._hook is not None:
            self._hook.remove()
            self._hook = self._last = None
            if self._convolutions:
                record.write("layers", convolutions=self._convolutions, biased_before_norm=self._biased)

    @record.careful
    def _called(self, module, inputs, output):
        if isinstance(module, self._torch.nn.modules.conv._ConvNd):
            self._convolutions += 1
            self._last = (output, module.bias is not None)
        elif isinstance(module, self._torch.nn.modules.batchnorm._NormBase) and self._last is not None:
            output, biased = self._last
            self._biased += biased and inputs[0] is output
            self._last = None
