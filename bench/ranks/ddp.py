#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks of Stoker (`stoker train ... ranks=2`) against Python's DistributedDataParallel with Gloo, in turns: the same
network, batch, optimizer and threads, data in memory on both sides.

    bench/ranks/ddp.py STOKER DEMO [--only cnn|mlp] [--pairs N] [--ranks N] [--quick]

STOKER: the command line's binary. DEMO: the unpacked sample (tools/demo_data). The peer is measured with the defaults of
DistributedDataParallel and as a good user sets it (ddp_peer.py: "tuned"); for the cnn in its faster memory layout, and
also with freed memory kept, as Stoker keeps it in its own process (docs/decisions/freed-memory.md). A turn of Stoker is a run of its own, whose first steps do not count; its time per step is that of the loop, data included, as the
peer's is. Then it prints where the time of a step goes. Needs the torch of tools/find_torch and the packages of
bench/peers/requirements.txt on PYTHONPATH; prints SKIPPED and exits with 77 without them.
"""
import argparse
import contextlib
import importlib.util
import math
import os
import pathlib
import socket
import statistics
import sys
import tempfile

import runs
import measure

# Keeps freed memory in a process of PyTorch.
KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}
PEER = runs.HERE / "ddp_peer.py"
SAME = ["schedule=constant", "warmup=0", "lr_scale=none", "lr=1e-6", "optimizer=sgd"]  # the weights hardly change
MLP = [*SAME, "target=y", "bins=1", "hidden=64", "layers=2", "dropout=0", "optimizer.momentum=0", "optimizer.nesterov=off",
       "weight_decay=0"]
CNN = [*SAME, "model=cnn", "augment=none", "optimizer.momentum=0.9", "weight_decay=5e-4", "label_smoothing=0.1"]


WAYS = {"plain": "its defaults", "tuned": "tuned", "tuned+kept": "tuned, freed memory kept"}


class Case:
    """name; words of `stoker train`; data of both sides; samples of a rank; steps of a turn, and those before it."""

    def __init__(self, name, words, ours, theirs, batch, steps, first, promises):
        """promises: {way of the peer: theirs / ours, or None}."""
        self.name, self.words, self.ours, self.theirs = name, words, ours, str(theirs)
        self.batch, self.steps, self.first, self.promises = batch, steps, first, promises


class Peer:
    """All ranks of the peer: what one is asked, all are asked. Answers are those of rank 0."""

    def __init__(self, case, ranks, way, layout):
        """way: as of ddp_peer.py; with "+kept" in an environment that keeps freed memory."""
        way, _, kept = way.partition("+")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        variables = runs.ENVIRONMENT | {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                                        "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"} | (KEPT if kept else {})
        command = [sys.executable, PEER, case.name, case.batch, way, layout, case.theirs]
        self.workers = [measure.Worker(command, variables | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)]

    def ask(self, **question):
        for worker in self.workers:
            worker.begin(**question)
        return [worker.answer(300) for worker in self.workers][0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:  # all, before one is waited for
            with contextlib.suppress(BrokenPipeError):
                worker.process.stdin.close()
        for worker in self.workers:
            worker.process.wait()


class Bench:
    def __init__(self, arguments, work):
        self.program, self.work, self.quick = arguments.stoker.absolute(), work, arguments.quick
        self.ranks, self.pairs, self.commit = arguments.ranks, 2 if arguments.quick else arguments.pairs, measure.commit()
        self.count = 0

    def run(self, case):
        """A run of Stoker: the whole Run."""
        self.count += 1
        words = [*case.words, *runs.PLAIN, f"ranks={self.ranks}", f"batch={self.ranks * case.batch}", f"steps={case.first + case.steps}"]
        return runs.train(self.program, case.ours, self.work / f"run{self.count}", words)

    def layout(self, case):
        """The peer's faster memory layout."""
        if case.name != "cnn":
            return "contiguous"
        found = {}
        for layout in ("contiguous", "channels_last"):
            with Peer(case, self.ranks, "tuned", layout) as peer:
                peer.ask(steps=max(2, case.steps // 10))
                found[layout] = min(peer.ask(steps=max(2, case.steps // 4))["mean"] for _ in range(2))
        print(f"{case.name}: a step of DistributedDataParallel: " + ", ".join(f"{ms:.2f} ms {name}" for name, ms in found.items()))
        return min(found, key=found.get)


def check_networks(ours, theirs, name):
    """The same tensors, or the comparison says nothing."""
    if name == "mlp":  # other names
        same = sorted(ours.values()) == sorted(map(tuple, theirs.values()))
    else:
        same = ours == {key: tuple(shape) for key, shape in theirs.items() if key in ours} and not (
            [key for key in theirs if key not in ours and not key.endswith("num_batches_tracked")])
    if not same:
        raise RuntimeError(f"{name}: the networks differ: {ours} and {theirs}")
    learned = sum(math.prod(shape) for key, shape in ours.items() if "running_" not in key and "num_batches" not in key)
    print(f"{name}: {learned:,} parameters on both sides, tensor by tensor")


def compare(bench, case):
    """Turns of Stoker and both ways of the peer; then where a step's time goes."""
    layout = bench.layout(case)
    with contextlib.ExitStack() as ends:
        peers = {way: ends.enter_context(Peer(case, bench.ranks, way, layout)) for way in case.promises}
        tuned, ended = peers["tuned"], []
        check_networks(bench.run(case).weights(), tuned.ask(shapes=True)["shapes"], case.name)
        for peer in peers.values():
            peer.ask(steps=case.first)

        def ours():
            ended.append(bench.run(case))
            each = [1e3 * seconds for seconds in ended[-1].step_seconds(case.first)]
            return {"mean": statistics.fmean(each), "median": statistics.median(each)}
        sides = {way: lambda peer=peer: peer.ask(steps=case.steps) for way, peer in peers.items()}
        found = measure.in_turns({"stoker": ours} | sides, bench.pairs, case.name)
        for way, promise in case.promises.items():
            for kind in ("mean", "median"):
                what = f"step of {case.name}, {case.batch} samples per rank, {bench.ranks} ranks, 1 thread each, {kind} of {case.steps:,} steps"
                row = measure.Row("ranks", what, f"DistributedDataParallel, {WAYS[way]}", "theirs / ours", promise if kind == "mean" else None,
                                  [each[kind] for each in found["stoker"]], [each[kind] for each in found[way]],
                                  note=layout if case.name == "cnn" else "", commit=bench.commit)
                print(row.text(), flush=True)
                print("  by pair: " + ", ".join(f"{ratio:.2f}" for ratio in row.ratios()), flush=True)
        tell_parts(case, ended, tuned, bench.quick)


def tell_parts(case, ended, tuned, quick):
    """Where the time of a step goes, on both sides."""
    phases = [run.phases() for run in ended]
    middle = {name: statistics.median(1e3 * each.get(name, 0) for each in phases) for name in phases[0]}
    print(f"{case.name}, Stoker, ms per step by phase of rank 0, all steps, median of the runs: "
          + ", ".join(f"{name} {ms:.3f}" for name, ms in middle.items() if ms >= 0.001))
    steps = max(3, case.steps // (10 if quick else 2))
    parts = tuned.ask(parts=steps)
    alone = parts.pop("all_reduce alone")
    for name, spent in parts.items():
        print(f"{case.name}, DistributedDataParallel, ms per step of rank 0, {name}: "
              + ", ".join(f"{part} {ms:.3f}" for part, ms in spent.items()) + f"; together {sum(spent.values()):.3f}")
    print(f"{case.name}, torch.distributed.all_reduce of as many values, alone: {alone:.3f} ms")
    print(f"{case.name}, DistributedDataParallel, torch.profiler, ms per step of their own: "
          + ", ".join(f"{name} {ms:.3f}" for name, ms in tuned.ask(profile=max(3, steps // 10))["rows"]), flush=True)


def cases_of(arguments, work):
    quick = arguments.quick
    table = runs.made_table(work / "table.csv", 6400)  # a fifth is for testing
    mlp = Case("mlp", MLP, table, 5120, 32, 300 if quick else 3000, 200, {"tuned": 1.5, "plain": None})
    cnn = Case("cnn", CNN, arguments.demo.absolute(), arguments.demo.absolute() / "train", 32, 20 if quick else 200, 90,
               {"tuned": 1.0, "tuned+kept": None, "plain": None})
    return [each for each in (cnn, mlp) if arguments.only in (None, each.name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("demo", type=pathlib.Path)
    parser.add_argument("--only", choices=("cnn", "mlp"))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="2 turns of fewer steps: checks that it runs, proves nothing")
    arguments = parser.parse_args()
    missing = [name for name in ("torch", "torchvision") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"SKIPPED: Python has no {' and no '.join(missing)}: see PYTHONPATH above")
        return 77
    if len(os.sched_getaffinity(0)) < arguments.ranks:
        print(f"{arguments.ranks} ranks on {len(os.sched_getaffinity(0))} cores: they wait for each other's cores")
    with tempfile.TemporaryDirectory() as folder:
        measure.tell_machine(arguments.stoker, ["torch", "torchvision"])
        bench = Bench(arguments, pathlib.Path(folder))
        for case in cases_of(arguments, bench.work):
            print(f"\n{case.name}: {measure.load()}", flush=True)
            compare(bench, case)
        print(f"\n{measure.load()} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
