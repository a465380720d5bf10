# SPDX-License-Identifier: Apache-2.0
"""One training step on a ready-made batch, as users of Python PyTorch, accelerate and Lightning write it. A worker of speed.py
(see measure.Worker): it times so many steps at each request.

    step_peer.py SYSTEM MODEL BATCH SIZE PRECISION THREADS

SYSTEM: pytorch, accelerate or lightning, with the optimizer as it is by default; or pytorch-fused. MODEL: mlp, cnn, resnet18, resnet50, gpt. SIZE: pixels, for gpt the context.
PRECISION: fp32 or bf16 (autocast). Requests: {"steps": N} answers with the median of their milliseconds ("wall") and the mean of the thread's
CPU time ("cpu"); {"bytes": true} with the most bytes that tensors held.
"""
import contextlib
import itertools
import json
import logging
import os
import statistics
import sys
import time
import warnings

os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # the profiler calls it an error that there is no GPU
import torch
from torch import profiler
from torch.nn import functional as F

import networks

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
VOCABULARY = 65  # of gpt's batch: tinyshakespeare's characters
RATE = 1e-6  # as in step_bench: the weights go nowhere, however long it is measured


def ready_batch(model, batch, size):
    if model == "mlp":
        return torch.randn(batch, 64), torch.randint(0, 10, (batch,))
    if model == "gpt":
        ids = torch.randint(0, VOCABULARY, (batch, size + 1))
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    pixels = torch.randint(0, 256, (batch, size, size, 3), dtype=torch.uint8)
    return pixels.permute(0, 3, 1, 2), torch.randint(0, 10, (batch,))  # memory in the order of channels_last


class Training(torch.nn.Module):
    """A network with what it does to a batch: forward() is the loss."""

    def __init__(self, model, size, fused):
        super().__init__()
        self.kind, self.fused = model, fused
        self.network = (networks.mlp() if model == "mlp" else networks.Gpt(VOCABULARY, size) if model == "gpt" else
                        networks.Cnn() if model == "cnn" else networks.resnet(int(model.removeprefix("resnet"))))
        if model not in ("mlp", "gpt"):
            self.network = self.network.to(memory_format=torch.channels_last)
        self.register_buffer("shift", torch.tensor(MEAN).mul(255).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("scale", torch.tensor(STD).mul(255).reciprocal().view(1, 3, 1, 1), persistent=False)

    def forward(self, x, target):
        if self.kind == "gpt":
            return self.network.loss(x, target)
        if self.kind == "mlp":
            return F.cross_entropy(self.network(x), target)
        return F.cross_entropy(self.network(x.float().sub_(self.shift).mul_(self.scale)), target, label_smoothing=0.1)


def optimizer_of(training):
    """Stoker's recipes: src/stoker/tasks/*_recipe.cpp."""
    fused = True if training.fused else None
    if training.kind == "mlp":
        return torch.optim.SGD(training.parameters(), RATE, fused=fused)
    if training.kind == "gpt":
        return torch.optim.AdamW(networks.decay_groups(training, 0.1), RATE, betas=(0.9, 0.99), fused=fused)
    decay = 5e-4 if training.kind == "cnn" else 1e-4
    return torch.optim.SGD(networks.decay_groups(training, decay), RATE, momentum=0.9, nesterov=True, fused=fused)


class Repeated:
    """The same batch so many times: data that cost nothing."""

    def __init__(self, batch, steps):
        self.batch, self.steps = batch, steps

    def __len__(self):
        return self.steps

    def __iter__(self):
        return iter([self.batch] * self.steps)


class Bare:
    """The loop of PyTorch's tutorials."""

    def __init__(self, training, batch, precision):
        self.training, self.batch, self.optimizer = training, batch, optimizer_of(training)
        self.cast = (lambda: torch.autocast("cpu", torch.bfloat16)) if precision == "bf16" else contextlib.nullcontext

    def step(self):
        self.optimizer.zero_grad()
        with self.cast():
            loss = self.training(*self.batch)
        loss.backward()
        self.optimizer.step()

    def times(self, steps):
        """The moments between so many steps, and the seconds of CPU time that this thread spent on them."""
        ends, begin = [time.perf_counter()], time.thread_time()
        for _ in range(steps):
            self.step()
            ends.append(time.perf_counter())
        return ends, time.thread_time() - begin


class Accelerated(Bare):
    def __init__(self, training, batch, precision):
        import accelerate
        super().__init__(training, batch, "fp32")
        self.helper = accelerate.Accelerator(cpu=True, mixed_precision="bf16" if precision == "bf16" else "no")
        self.training, self.optimizer = self.helper.prepare(self.training, self.optimizer)

    def step(self):
        self.optimizer.zero_grad()
        self.helper.backward(self.training(*self.batch))
        self.optimizer.step()


class Lightning:
    """Its Trainer with all logging off."""

    def __init__(self, training, batch, precision):
        import lightning
        for name in ("lightning", "lightning.pytorch", "lightning.fabric"):
            logging.getLogger(name).setLevel(logging.ERROR)
        ends, spent = self.ends, self.spent = [], []

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.inner = training

            def training_step(self, both, _):
                return self.inner(*both)

            def configure_optimizers(self):
                return optimizer_of(self.inner)

            def on_train_start(self):
                ends.append(time.perf_counter())
                spent.append(time.thread_time())

            def on_train_end(self):
                spent.append(time.thread_time())

            def on_train_batch_end(self, *_):
                ends.append(time.perf_counter())
        self.module, self.batch = Module(), batch
        self.trainer = lambda: lightning.Trainer(
            accelerator="cpu", devices=1, max_epochs=1, logger=False, enable_progress_bar=False, enable_checkpointing=False,
            enable_model_summary=False, precision="bf16-mixed" if precision == "bf16" else "32-true")

    def times(self, steps):
        self.ends.clear()
        self.spent.clear()
        self.trainer().fit(self.module, Repeated(self.batch, steps))
        return self.ends, self.spent[1] - self.spent[0]


def peak_bytes(make):
    """The most that tensors held at once, from the making of model and batch through three steps. The profiler tells of every
    allocation and every end of one, as torch's allocator tells Stoker's own meter (src/stoker/device/tensor_bytes.h)."""
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True) as seen:
        loop = make()
        for _ in range(3):
            loop.step()
    changes = (event.nbytes() for event in seen.profiler.kineto_results.events() if event.name() == "[memory]")
    return max(itertools.accumulate(changes))


def main():
    system, model, batch, size, precision, threads = sys.argv[1:]
    warnings.filterwarnings("ignore")
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    size = int(size)

    def make():
        data = ready_batch(model, int(batch), size)
        loop = {"pytorch": Bare, "accelerate": Accelerated, "lightning": Lightning}[system.removesuffix("-fused")]
        return loop(Training(model, size, system.endswith("-fused")), data, precision)
    loop = None
    for line in sys.stdin:
        question = json.loads(line)
        if "bytes" in question:
            answer = {"bytes": peak_bytes(make)}
        else:
            loop = loop or make()
            ends, spent = loop.times(question["steps"])
            answer = {"wall": statistics.median(1000 * (b - a) for a, b in zip(ends, ends[1:])),
                      "cpu": 1000 * spent / question["steps"]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
