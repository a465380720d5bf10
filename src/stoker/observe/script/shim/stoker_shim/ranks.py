# SPDX-License-Identifier: Apache-2.0
"""Notes what ranks of one training do: how often they add up gradients, how long each works per step, whether they agree."""

import functools
import threading
import time

from . import record
from .ledger import ledger
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
        self._searching = 0.0  # seconds, for parameters that a step does not use
        self._work = []
        self._at = time.perf_counter()
        self._waited = self._ours = 0.0  # for other ranks, since the last step; for us, since the start
        self._measuring = False

    def made(self, wrapper):
        if self._wrapper is None:
            self._torch.autograd.backward = self.measured(self._torch.autograd.backward, self.waited)
            for name in _TOGETHER:
                setattr(self._torch.distributed, name, self.measured(getattr(self._torch.distributed, name), self.waited))
            steps.on_step.append(self.at_step)
        self._wrapper = wrapper

    def forward(self, wrapper):
        if self._torch.is_grad_enabled():
            self._forwards += 1
            self._syncs += bool(wrapper.require_backward_grad_sync)

    def waited(self, seconds, computing):
        """A backward pass ends by waiting for the sums, a forward pass may begin with buffers of rank 0: what its thread
        does not compute there, it waits."""
        self._waited += max(seconds - computing, 0.0)

    def searched(self, seconds, computing):
        self._searching += seconds

    def measured(self, own, note):
        """The function, with its seconds and those on a core noted, on the thread that trains, and once if it calls another
        one of these. Under `torch.compile` the call is passed on, since it recognises the original."""

        @functools.wraps(own)
        def wrapper(*args, **kwargs):
            if self._torch.compiler.is_compiling() or self._measuring or threading.get_ident() != ledger.owner:
                return own(*args, **kwargs)
            self._measuring = True
            start, computing = time.perf_counter(), time.thread_time()
            try:
                return own(*args, **kwargs)
            finally:
                note(time.perf_counter() - start, time.thread_time() - computing)
                self._measuring = False

        return wrapper

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
            searching=self._searching,
            unused_bytes=self._unused(),
            digest=self._digest() if step == _AT[1] else None,
        )
        self._work = []

    @record.careful
    def _unused(self):
        """Bytes of parameters that a step did not use; none where DistributedDataParallel does not search for them."""
        if not self._wrapper.find_unused_parameters:
            return None
        return self._wrapper._get_ddp_logging_data().get("unused_parameter_size")

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
    DistributedDataParallel._post_forward = ranks.measured(DistributedDataParallel._post_forward, ranks.searched)
    DistributedDataParallel._sync_buffers = ranks.measured(DistributedDataParallel._sync_buffers, ranks.waited)


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
