# SPDX-License-Identifier: Apache-2.0
"""One training step on a ready-made batch, as users of Python PyTorch, accelerate and Lightning write it. A worker of
speed.py and gpu.py (see measure.Worker): each request times some steps.

    step_peer.py SYSTEM MODEL BATCH SIZE PRECISION THREADS [DEVICE]

SYSTEM: pytorch, accelerate or lightning, with the default optimizer; pytorch-fused; or pytorch-fused through
torch.compile: compile, or reduce-overhead (with CUDA graphs). ":BACKEND" after these two selects another backend than
inductor, which needs a compiler. MODEL: mlp, cnn, resnet18, resnet50, gpt, gpt2. SIZE: pixels, for a gpt the context.
PRECISION: fp32 or bf16 (autocast). DEVICE: cpu, cuda (only pytorch and torch.compile). Requests: {"steps": N} returns
the milliseconds per step ("wall": the median on a CPU; on a GPU the mean, after a final synchronize) and the mean CPU
time of the thread ("cpu"); {"bytes": true} returns the peak tensor bytes.
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

os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # without a GPU the profiler prints an error
import torch
from torch import profiler
from torch.nn import functional as F

import networks

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
VOCABULARIES = {"gpt": 65, "gpt2": 50257}  # tinyshakespeare's characters; GPT-2's tokens
RATE = 1e-6  # as in step_bench: the weights hardly change in a long measurement


def ready_batch(model, batch, size):
    if model == "mlp":
        return torch.randn(batch, 64), torch.randint(0, 10, (batch,))
    if model in VOCABULARIES:
        ids = torch.randint(0, VOCABULARIES[model], (batch, size + 1))
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    pixels = torch.randint(0, 256, (batch, size, size, 3), dtype=torch.uint8)
    return pixels.permute(0, 3, 1, 2), torch.randint(0, 10, (batch,))  # memory in the order of channels_last


class Training(torch.nn.Module):
    """A network with its preprocessing and loss: forward() returns the loss."""

    def __init__(self, model, size, fused):
        super().__init__()
        self.kind, self.fused = model, fused
        self.network = (networks.mlp() if model == "mlp" else networks.Gpt(VOCABULARIES[model], size) if model == "gpt" else
                        networks.gpt2(size) if model == "gpt2" else networks.Cnn() if model == "cnn" else
                        networks.resnet(int(model.removeprefix("resnet"))))
        if model != "mlp" and model not in VOCABULARIES:
            self.network = self.network.to(memory_format=torch.channels_last)
        self.register_buffer("shift", torch.tensor(MEAN).mul(255).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("scale", torch.tensor(STD).mul(255).reciprocal().view(1, 3, 1, 1), persistent=False)

    def forward(self, x, target):
        if self.kind in VOCABULARIES:
            return self.network.loss(x, target)
        if self.kind == "mlp":
            return F.cross_entropy(self.network(x), target)
        return F.cross_entropy(self.network(x.float().sub_(self.shift).mul_(self.scale)), target, label_smoothing=0.1)


def optimizer_of(training):
    """Stoker's recipes: src/stoker/tasks/*_recipe.cpp."""
    fused = True if training.fused else None
    if training.kind == "mlp":
        return torch.optim.SGD(training.parameters(), RATE, fused=fused)
    if training.kind in VOCABULARIES:
        return torch.optim.AdamW(networks.decay_groups(training, 0.1), RATE, betas=(0.9, 0.99), fused=fused)
    decay = 5e-4 if training.kind == "cnn" else 1e-4
    return torch.optim.SGD(networks.decay_groups(training, decay), RATE, momentum=0.9, nesterov=True, fused=fused)


class Repeated:
    """The same batch in every step: data that cost nothing."""

    def __init__(self, batch, steps):
        self.batch, self.steps = batch, steps

    def __len__(self):
        return self.steps

    def __iter__(self):
        return iter([self.batch] * self.steps)


class Bare:
    """The loop of PyTorch's tutorials."""

    def __init__(self, training, batch, precision, device="cpu"):
        self.training, self.device = training.to(device), device
        self.batch, self.optimizer = [each.to(device) for each in batch], optimizer_of(training)
        self.cast = (lambda: torch.autocast(device, torch.bfloat16)) if precision == "bf16" else contextlib.nullcontext

    def step(self):
        self.optimizer.zero_grad()
        with self.cast():
            loss = self.training(*self.batch)
        loss.backward()
        self.optimizer.step()

    def times(self, steps):
        """The times before and after each step (on a GPU evenly spaced), and the CPU seconds of this thread."""
        ends, begin = [time.perf_counter()], time.thread_time()
        for _ in range(steps):
            self.step()
            ends.append(time.perf_counter())
        spent = time.thread_time() - begin
        if self.device == "cuda":  # the times are those when the work was queued
            torch.cuda.synchronize()
            each = (time.perf_counter() - ends[0]) / steps
            ends = [ends[0] + number * each for number in range(steps + 1)]
        return ends, spent


class Compiled(Bare):
    """The same with torch.compile: the model with its loss, as its users do."""

    def __init__(self, training, batch, precision, device, mode, backend):
        super().__init__(training, batch, precision, device)
        self.training = torch.compile(self.training, mode=mode, backend=backend)


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


def peak_bytes(make, device):
    """The peak of the tensor bytes, from making model and batch through three steps. The profiler reports every
    allocation and every free, as torch's allocator reports them to Stoker's own meter
    (src/stoker/device/tensor_bytes.h)."""
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        run_three(make)
        return torch.cuda.max_memory_allocated() - before
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True) as seen:
        run_three(make)
    changes = (event.nbytes() for event in seen.profiler.kineto_results.events() if event.name() == "[memory]")
    return max(itertools.accumulate(changes))


def run_three(make):
    loop = make()
    for _ in range(3):
        loop.step()


def loop_of(system, training, data, precision, device):
    name, _, backend = system.partition(":")
    if name in ("compile", "reduce-overhead"):
        return Compiled(training, data, precision, device, None if name == "compile" else name, backend or "inductor")
    loop = {"pytorch": Bare, "accelerate": Accelerated, "lightning": Lightning}[name.removesuffix("-fused")]
    return loop(training, data, precision) if device == "cpu" else loop(training, data, precision, device)


def main():
    system, model, batch, size, precision, threads, device = (sys.argv[1:] + ["cpu"])[:7]
    warnings.filterwarnings("ignore")
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    if device == "cuda":  # TF32 and cuDNN's search, as in Stoker's plans
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
    size = int(size)
    fused = system not in ("pytorch", "accelerate", "lightning")

    def make():
        return loop_of(system, Training(model, size, fused), ready_batch(model, int(batch), size), precision, device)
    loop = None
    for line in sys.stdin:
        question = json.loads(line)
        if "bytes" in question:
            answer = {"bytes": peak_bytes(make, device)}
        else:
            loop = loop or make()
            ends, spent = loop.times(question["steps"])
            answer = {"wall": statistics.median(1000 * (b - a) for a, b in zip(ends, ends[1:])),
                      "cpu": 1000 * spent / question["steps"]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
