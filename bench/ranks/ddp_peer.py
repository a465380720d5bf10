# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch's DistributedDataParallel over Gloo, as a good user writes it. A worker of ddp.py (see
measure.Worker): all ranks get the same requests, and each answers.

    ddp_peer.py MODEL BATCH WAY LAYOUT DATA

Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. MODEL: mlp or cnn. BATCH: samples of this rank. WAY: plain, or
tuned (gradients are views of the buckets, buffers are not broadcast, the graph is static). LAYOUT: contiguous or
channels_last. DATA: a folder of classes for the cnn; else the number of rows to make. The data are in memory, and each
step takes its samples from there. One thread per operator. Requests:
    {"steps": N}     milliseconds per step: mean, and median
    {"parts": N}     milliseconds per step of the step's parts, and without communication (no_sync)
    {"profile": N}   rows of torch.profiler: name, milliseconds per step of their own
    {"shapes": true} shapes of parameters and buffers
"""
import contextlib
import json
import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # without a GPU the profiler prints an error
import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import networks

MEAN, STD = 0.286, 0.353  # of Fashion-MNIST
TUNED = {"gradient_as_bucket_view": True, "broadcast_buffers": False, "static_graph": True}


def images_of(folder):
    """All images of the class folders, grey, and their classes."""
    from torchvision import datasets, transforms
    read = datasets.ImageFolder(folder, transforms.Compose([transforms.Grayscale(), transforms.PILToTensor()]))
    return torch.stack([pixels for pixels, _ in read]), torch.tensor(read.targets)


class Rank:
    def __init__(self, model, batch, way, layout, data):
        self.image, self.batch = model == "cnn", batch
        self.format = torch.channels_last if layout == "channels_last" else torch.contiguous_format
        self.inputs, self.targets = images_of(data) if self.image else (torch.randn(int(data), 64), torch.randint(0, 10, (int(data),)))
        network = networks.Cnn(channels=1).to(memory_format=self.format) if self.image else networks.mlp()
        self.model = DistributedDataParallel(network, **(TUNED if way == "tuned" else {}))
        decay, momentum = (5e-4, 0.9) if self.image else (0.0, 0.0)
        groups = networks.decay_groups(network, decay) if self.image else network.parameters()
        self.optimizer = torch.optim.SGD(groups, 1e-6, momentum=momentum, nesterov=self.image, fused=True)
        self.order, self.at = torch.randperm(len(self.targets)), 0

    def take(self):
        """The next samples, as a sampler gives them: a random order of the rows."""
        if self.at + self.batch > len(self.order):
            self.order, self.at = torch.randperm(len(self.targets)), 0
        rows = self.order[self.at:self.at + self.batch]
        self.at += self.batch
        inputs = self.inputs[rows]
        if self.image:
            inputs = inputs.to(dtype=torch.float32, memory_format=self.format).sub_(255 * MEAN).mul_(1 / (255 * STD))
        return inputs, self.targets[rows]

    def loss(self, outputs, targets):
        return F.cross_entropy(outputs, targets, label_smoothing=0.1 if self.image else 0.0)

    def step(self):
        inputs, targets = self.take()
        self.optimizer.zero_grad()
        self.loss(self.model(inputs), targets).backward()
        self.optimizer.step()

    def times(self, steps):
        dist.barrier()
        ends = [time.perf_counter()]
        for _ in range(steps):
            self.step()
            ends.append(time.perf_counter())
        each = [1e3 * (after - before) for before, after in zip(ends, ends[1:])]
        return {"mean": statistics.fmean(each), "median": statistics.median(each)}

    def parts_of(self, steps):
        """Mean milliseconds of each part of a step."""
        spent = dict.fromkeys(("batch", "zero_grad", "forward", "loss", "backward", "optimizer"), 0.0)
        last = time.perf_counter()

        def book(name):
            nonlocal last
            now = time.perf_counter()
            spent[name] += 1e3 * (now - last) / steps
            last = now
        for _ in range(steps):
            inputs, targets = self.take()
            book("batch")
            self.optimizer.zero_grad()
            book("zero_grad")
            outputs = self.model(inputs)
            book("forward")
            loss = self.loss(outputs, targets)
            book("loss")
            loss.backward()
            book("backward")
            self.optimizer.step()
            book("optimizer")
        return spent

    def parts(self, steps):
        dist.barrier()
        found = {"with communication": self.parts_of(steps)}
        with self.model.no_sync():
            found["without (no_sync)"] = self.parts_of(steps)
        return found | {"all_reduce alone": self.sums(steps)}

    def sums(self, steps):
        """Of as many values as the model has, not beside backward."""
        flat = torch.zeros(sum(each.numel() for each in self.model.parameters()))
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            dist.all_reduce(flat)
        return 1e3 * (time.perf_counter() - begin) / steps

    def profile(self, steps):
        dist.barrier()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as seen:
            for _ in range(steps):
                self.step()
        rows = [(row.key, row.self_cpu_time_total / 1e3 / steps) for row in seen.key_averages()]
        return sorted(rows, key=lambda row: -row[1])[:12]

    def shapes(self):
        return {name: list(each.shape) for name, each in self.model.module.state_dict().items()}


def main():
    model, batch, way, layout, data = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank = Rank(model, int(batch), way, layout, data)
    for line in sys.stdin:
        question = json.loads(line)
        if "steps" in question:
            answer = rank.times(question["steps"])
        elif "parts" in question:
            answer = rank.parts(question["parts"])
        elif "profile" in question:
            answer = {"rows": rank.profile(question["profile"])}
        else:
            answer = {"shapes": rank.shapes()}
        print(json.dumps(answer), flush=True)
    with contextlib.suppress(RuntimeError):
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
