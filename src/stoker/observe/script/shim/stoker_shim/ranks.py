# SPDX-License-Identifier: Apache-2.0
"""Notes what ranks of one training do: how often they add up gradients, how long each works per step, whether they agree."""

import functools
import time

from . import record
from .loader import digest
from .steps import steps

_AT = (20, 40)  # steps after which the state is noted; the parameters' digest after the second
_TOGETHER = ("all_reduce", "reduce", "broadcast", "all_gather", "barrier")  # that a script may call by itself
_MOST = 50  # steps whose work is noted per record


class _Ranks:
    def __init__(self, torch):
        self._torch = torch
        self._wrapper = None  # the last DistributedDataParallel; None: there is one rank, and nothing to note
        self._forwards = self._syncs = 0
        self._work = []
        self._at = time.perf_counter()
        self._waited = self._ours = 0.0  # for other ranks, since the last step; for us, since the start

    def made(self, wrapper):
        if self._wrapper is None:
            self._torch.autograd.backward = _timed(self._torch.autograd.backward, self)
            for name in _TOGETHER:
                setattr(self._torch.distributed, name, _timed(getattr(self._torch.distributed, name), self))
            steps.on_step.append(self.at_step)
        self._wrapper = wrapper

    def forward(self, wrapper):
        if self._torch.is_grad_enabled():
            self._forwards += 1
            self._syncs += bool(wrapper.require_backward_grad_sync)

    def together(self, seconds, computing):
        """A backward pass ends by waiting for the sums, a forward pass may begin with buffers of rank 0: what its thread
        does not compute there, it waits."""
        self._waited += max(seconds - computing, 0.0)

    @record.careful
    def at_step(self, step):
        now = time.perf_counter()
        ours, self._ours = steps.own_seconds - self._ours, steps.own_seconds
        self._work.append(round(now - self._at - self._waited - ours, 6))
        if step in _AT or len(self._work) == _MOST:
            self._write(step)
        self._at, self._waited = now, 0.0

    def _write(self, step):
        record.write(
            "ranks",
            step=step,
            first_step=step - len(self._work) + 1,
            work=self._work,
            world=self._torch.distributed.get_world_size(),
            rank=self._torch.distributed.get_rank(),
            forwards=self._forwards,
            syncs=self._syncs,
            digest=self._digest() if step == _AT[1] else None,
        )
        self._work = []

    def _digest(self):
        """Of the first parameter; none on a device, where reading it would wait."""
        first = next(self._wrapper.parameters())
        return digest(self._torch, first) if first.device.type == "cpu" else None


def watch(torch):
    if not torch.distributed.is_available():
        return
    from torch.nn.parallel import DistributedDataParallel

    ranks = _Ranks(torch)
    DistributedDataParallel.__init__ = _after(DistributedDataParallel.__init__, ranks.made)
    DistributedDataParallel.forward = _before(DistributedDataParallel.forward, ranks.forward)
    DistributedDataParallel._sync_buffers = _timed(DistributedDataParallel._sync_buffers, ranks)


def _after(own, note):
    @functools.wraps(own)
    def wrapper(self, *args, **kwargs):
        own(self, *args, **kwargs)
        record.careful(note)(self)

    return wrapper


def _before(own, note):
    note = record.careful(note)

    @functools.wraps(own)
    def wrapper(self, *args, **kwargs):
        note(self)
        return own(self, *args, **kwargs)

    return wrapper


def _timed(own, ranks):
    @functools.wraps(own)
    def wrapper(*args, **kwargs):
        start, computing = time.perf_counter(), time.thread_time()
        try:
            return own(*args, **kwargs)
        finally:
            ranks.together(time.perf_counter() - start, time.thread_time() - computing)

    return wrapper
