# SPDX-License-Identifier: Apache-2.0
"""One way to train a network on several devices in PyTorch. A worker of data_parallel.py (see measure.Worker).

    data_parallel_peer.py SCHEME NETWORK BATCH DEVICES

SCHEME: data_parallel, a SIMULATION of nn.DataParallel on CPU replicas, since its own functions need CUDA: one process
scatters the batch, copies the network to every replica, runs the replicas in threads, gathers their outputs on replica 0,
computes the loss there, runs the replicas' backward in threads, and adds their gradients up on replica 0; loss_in_forward:
the same with the loss as part of each replica's network, so that scalars are gathered; rank: one rank of
DistributedDataParallel (reads RANK and the like). NETWORK: cnn, or lm, a small transformer with a large vocabulary.
BATCH: samples over all devices. One thread per operator. Requests:
    {"steps": N}     milliseconds per step, mean
    {"bytes": true}  per device: bytes of tensors by kind that are needed at the same time as backward begins: outputs are
                     counted once, since their gradient comes when they are gone. "off": how far the gradients of
                     the first step are from those of the network alone on the same samples, relative to the largest
                     value of each tensor (ranks sum those of other samples, and batch norm sees fewer of them)
"""
import copy
import json
import pathlib
import statistics
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import networks

VOCABULARY, CONTEXT = 16384, 64
RATE = 1e-6


class WithLoss(torch.nn.Module):
    """A network and its loss: what is gathered is a scalar."""

    def __init__(self, inner, loss):
        super().__init__()
        self.inner, self.loss, self.bytes = inner, loss, 0  # of the outputs

    def forward(self, inputs, targets):
        outputs = self.inner(inputs)
        self.bytes = size([outputs])
        return self.loss(outputs, targets)


def problem(name, batch):
    """Network, loss of (outputs, targets), inputs, targets."""
    if name == "cnn":
        return (networks.Cnn(channels=1), lambda outputs, targets: F.cross_entropy(outputs, targets),
                torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,)))
    return (networks.Gpt(VOCABULARY, CONTEXT, layers=2, heads=2, width=64),
            lambda outputs, targets: F.cross_entropy(outputs.flatten(0, 1), targets.flatten()),
            torch.randint(0, VOCABULARY, (batch, CONTEXT)), torch.randint(0, VOCABULARY, (batch, CONTEXT)))


def in_threads(works):
    """Runs all at the same time; their results. An error of one is raised."""
    results = [None] * len(works)

    def run(number):
        try:
            results[number] = works[number]()
        except Exception as error:  # raised below
            results[number] = error
    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


class Saved:
    """Counts the bytes that autograd keeps for backward in a scope of this thread: each storage once, but for those that
    are counted elsewhere."""

    def __init__(self, elsewhere):
        self.known = {tensor.untyped_storage().data_ptr() for tensor in elsewhere}
        self.bytes = 0
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor)

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.known:
            self.known.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        return tensor

    def __enter__(self):
        self.hooks.__enter__()
        return self

    def __exit__(self, *error):
        return self.hooks.__exit__(*error)


def size(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def state_of(optimizer):
    return [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]


class DataParallel:
    """What torch.nn.parallel's scatter, replicate, parallel_apply and gather do, on CPU replicas."""

    def __init__(self, network, loss, devices, loss_in_forward):
        self.loss, self.in_forward = loss, loss_in_forward
        self.network = WithLoss(network, loss) if loss_in_forward else network
        self.replicas = [self.network] + [copy.deepcopy(self.network) for _ in range(devices - 1)]
        self.optimizer = torch.optim.SGD(self.network.parameters(), RATE, momentum=0.9, fused=True)

    def replicate(self):
        """New memory in every step, as nn.DataParallel does."""
        for replica in self.replicas[1:]:
            for own, first in zip((*replica.parameters(), *replica.buffers()), (*self.network.parameters(), *self.network.buffers())):
                own.data, own.grad = first.detach().clone(), None

    def forward(self, number, inputs, targets):
        replica = self.replicas[number]
        with Saved([*self.network.parameters(), *replica.parameters(), inputs, targets]) as saved:
            outputs = replica(inputs, targets) if self.in_forward else replica(inputs)
        return outputs, saved.bytes

    def step(self, inputs, targets, counted=None):
        """counted: takes the bytes of each device."""
        devices = len(self.replicas)
        self.optimizer.zero_grad()
        parts = list(zip(*([each.clone() for each in whole.chunk(devices)] for whole in (inputs, targets))))  # scatter
        self.replicate()
        answers = in_threads([lambda n=n, part=part: self.forward(n, *part) for n, part in enumerate(parts)])
        outputs = [output for output, _ in answers]
        gathered = torch.stack(outputs) if self.in_forward else torch.cat(outputs)
        gathered = gathered.detach().requires_grad_()
        with Saved([gathered, targets]) as saved:
            loss = gathered.mean() if self.in_forward else self.loss(gathered, targets)
        loss.backward()
        slopes = gathered.grad.unbind() if self.in_forward else gathered.grad.split([len(each) for each in outputs])
        in_threads([lambda output=output, slope=slope: output.backward(slope) for output, slope in zip(outputs, slopes)])
        if counted is not None:
            first = {"kept by the loss": saved.bytes, "optimizer": size(state_of(self.optimizer))}
            for number, (replica, part) in enumerate(zip(self.replicas, parts)):
                counted.append({"parameters": size([*replica.parameters(), *replica.buffers()]),
                                "gradients": size(each.grad for each in replica.parameters()),
                                "inputs": size(part) + (size([inputs, targets]) if number == 0 else 0),
                                "kept by the network": answers[number][1],
                                "outputs or their gradient": replica.bytes if self.in_forward else
                                size([gathered if number == 0 else outputs[number]]),
                                **(first if number == 0 else {})})
        for replica in self.replicas[1:]:  # add up on device 0
            for first, own in zip(self.network.parameters(), replica.parameters()):
                first.grad.add_(own.grad)
                own.grad = None
        self.optimizer.step()


class Rank:
    """A rank of DistributedDataParallel: all that it needs is on its own device."""

    def __init__(self, network, loss):
        self.loss = loss
        self.network = torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True, broadcast_buffers=False)
        self.optimizer = torch.optim.SGD(network.parameters(), RATE, momentum=0.9, fused=True)

    def step(self, inputs, targets, counted=None):
        self.optimizer.zero_grad()
        with Saved([*self.network.parameters(), inputs, targets]) as saved:
            outputs = self.network(inputs)
            loss, bytes_ = self.loss(outputs, targets), size([outputs])
        del outputs  # as in loss(network(inputs), targets)
        loss.backward()
        if counted is not None:
            counted.append({"parameters": size([*self.network.parameters(), *self.network.buffers()]),
                            "gradients": size(each.grad for each in self.network.parameters()), "inputs": size([inputs, targets]),
                            "kept by network and loss": saved.bytes, "outputs or their gradient": bytes_,
                            "optimizer": size(state_of(self.optimizer))})
        self.optimizer.step()


def main():
    scheme, name, batch, devices = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    ranks = scheme == "rank"
    if ranks:
        dist.init_process_group("gloo")
    network, loss, inputs, targets = problem(name, batch // devices if ranks else batch)
    way = Rank(network, loss) if ranks else DataParallel(network, loss, devices, scheme == "loss_in_forward")
    for line in sys.stdin:
        question = json.loads(line)
        if "steps" in question:
            ends = [time.perf_counter()]
            for _ in range(question["steps"]):
                way.step(inputs, targets)
                ends.append(time.perf_counter())
            answer = {"mean": 1e3 * statistics.fmean(after - before for before, after in zip(ends, ends[1:]))}
        else:
            counted = []
            plain = copy.deepcopy(network)
            loss(plain(inputs), targets).backward()
            way.step(inputs, targets)  # makes the optimizer's state: the momentum of a first step is its gradient
            off = max(((own["momentum_buffer"] - each.grad).abs().max() / each.grad.abs().max()).item()
                      for own, each in zip(way.optimizer.state.values(), plain.parameters()))
            way.step(inputs, targets, counted)
            answer = {"devices": counted, "off": off}
        print(json.dumps(answer), flush=True)
    if ranks:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
