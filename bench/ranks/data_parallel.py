#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process with several devices, as nn.DataParallel has it, beside ranks: time of a step, and bytes on each device.

    bench/ranks/data_parallel.py STOKER DEMO [--devices N] [--pairs N] [--quick]

STOKER: the command line's binary. DEMO: the unpacked sample (tools/demo_data). The devices are replicas on the CPU: a
SIMULATION (data_parallel_peer.py), since nn.DataParallel needs CUDA. It shows what the scheme costs, not what a GPU would
take. Two networks: the cnn, and a small transformer with a vocabulary of 16,384, whose outputs are large. Beside them
ranks of DistributedDataParallel, and for the cnn Stoker's. Bytes are those of counted tensors: parameters, gradients, the
optimizer's state, what autograd keeps, inputs and outputs. Needs the torch of tools/find_torch on PYTHONPATH; prints
SKIPPED and exits with 77 without it.
"""
import argparse
import contextlib
import importlib.util
import itertools
import pathlib
import socket
import statistics
import sys
import tempfile

import ddp
import runs
import measure

PEER = runs.HERE / "data_parallel_peer.py"
SCHEMES = {"data_parallel": "DataParallel (simulated)", "loss_in_forward": "DataParallel (simulated), loss in forward",
           "rank": "DistributedDataParallel, ranks"}


class Group:
    """The processes of a scheme: one, or a rank for each device."""

    def __init__(self, scheme, network, batch, devices):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = devices if scheme == "rank" else 1
        variables = runs.ENVIRONMENT | {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                                        "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, PEER, scheme, network, batch, devices]
        self.workers = [measure.Worker(command, variables | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)]

    def ask(self, **question):
        """The answers of all."""
        for worker in self.workers:
            worker.begin(**question)
        return [worker.answer(600) for worker in self.workers]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            with contextlib.suppress(BrokenPipeError):
                worker.process.stdin.close()
        for worker in self.workers:
            worker.process.wait()


def mebi(value):
    return f"{value / 2 ** 20:.1f}"


def tell_bytes(network, scheme, devices):
    """A row per device, and how much more the first one holds than the last."""
    kinds = dict.fromkeys(itertools.chain.from_iterable(devices))
    for number, device in enumerate(devices):
        parts = ", ".join(f"{kind} {mebi(device[kind])}" for kind in kinds if device.get(kind))
        print(f"{network}, {SCHEMES[scheme]}, device {number}: {mebi(sum(device.values()))} MiB ({parts})")
    first, last = sum(devices[0].values()), sum(devices[-1].values())
    print(f"{network}, {SCHEMES[scheme]}: device 0 holds {first / last:.2f} times the bytes of device {len(devices) - 1}", flush=True)
    return first


def stoker_side(arguments, work, batch, steps):
    """A turn of Stoker's ranks on the sample: milliseconds per step. Data are read from memory."""
    numbers, first = itertools.count(), 90

    def run():
        words = [*ddp.CNN, "label_smoothing=0", *runs.PLAIN, f"ranks={arguments.devices}", f"batch={batch}", f"steps={first + steps}"]
        words.remove("label_smoothing=0.1")
        done = runs.train(arguments.stoker.absolute(), arguments.demo.absolute(), work / f"run{next(numbers)}", words)
        return 1e3 * statistics.fmean(done.step_seconds(first))
    return run


def compare(arguments, work, network, batch, steps):
    devices, pairs = arguments.devices, 2 if arguments.quick else arguments.pairs
    print(f"\n{network}, batch {batch} over {devices} devices, 1 thread each; {measure.load()}")
    with contextlib.ExitStack() as ends:
        groups = {scheme: ends.enter_context(Group(scheme, network, batch, devices)) for scheme in SCHEMES}
        first = {}
        for scheme, group in groups.items():
            answers = group.ask(bytes=True)
            if network == "lm" and scheme != "rank" and answers[0]["off"] > 1e-4:
                raise RuntimeError(f"{scheme}: gradients are off by {answers[0]['off']:.1e} from those of one network")
            counted = [device for answer in answers for device in answer["devices"]]
            first[scheme] = tell_bytes(network, scheme, counted)
        print(f"{network}: the loss in forward takes {mebi(first['data_parallel'] - first['loss_in_forward'])} MiB off device 0 "
              f"({100 * (1 - first['loss_in_forward'] / first['data_parallel']):.0f} %); "
              f"with ranks it holds {100 * first['rank'] / first['data_parallel']:.0f} % of what DataParallel needs there")
        sides = {scheme: lambda group=group: group.ask(steps=steps)[0]["mean"] for scheme, group in groups.items()}
        if network == "cnn":
            sides["stoker"] = stoker_side(arguments, work, batch, steps)
        for group in groups.values():
            group.ask(steps=max(2, steps // 5))
        found = measure.in_turns(sides, pairs, network)
    for scheme, times in found.items():
        ratio = [one / other for one, other in zip(found["data_parallel"], times)]
        low, high = measure.median_interval(ratio)
        print(f"{network}, {SCHEMES.get(scheme, 'Stoker, ranks')}: {measure.quantity(times, 'ms')} per step; DataParallel / it "
              f"{statistics.median(ratio):.2f} [{low:.2f} to {high:.2f}] ({len(ratio)} turns)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("demo", type=pathlib.Path)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="2 turns of few steps: checks that it runs, proves nothing")
    arguments = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("SKIPPED: Python has no torch: see PYTHONPATH above")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        measure.tell_machine(arguments.stoker, ["torch"])
        compare(arguments, pathlib.Path(folder), "cnn", 64, 5 if arguments.quick else 50)
        compare(arguments, pathlib.Path(folder), "lm", 16, 3 if arguments.quick else 20)
        print(f"\n{measure.load()} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
