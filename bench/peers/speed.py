#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares speed and memory of Stoker with Python PyTorch, accelerate and Lightning on the same work, in turns.

    bench/peers/speed.py BUILD DEMO [--data FOLDER] [--only GROUP] [--into FILE] [--quick]
    bench/peers/speed.py --table FILE

BUILD: a build folder with the command line and step_worker. DEMO: the unpacked sample (tools/demo_data). --data: a
folder with cifar10/ (tar shards of images) and tinyshakespeare/input.txt; rows without their data print a skip message.
Groups: step, eager, files, memory, start. --into writes the rows to a file and replaces earlier rows of the same work;
--table prints such a file in Markdown: a short table for the README, then all rows. Run by `make bench-peers`, which
installs the packages of requirements.txt. Nothing here imports torch: see measure.py.
"""
import argparse
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import sys
import tarfile
import tempfile

import measure
from measure import Row

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ("torch", "torchvision", "accelerate", "lightning", "numpy", "pillow")
FASTER, SMALLER = "theirs / ours", "ours / theirs"
# Keeps freed memory in a process of PyTorch, as Stoker does in its own (docs/decisions/freed-memory.md).
KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}


class Bench:
    def __init__(self, arguments, work):
        self.build, self.work, self.into = pathlib.Path(arguments.build).absolute(), work, arguments.into
        self.demo, self.quick = pathlib.Path(arguments.demo).absolute(), arguments.quick
        self.data = pathlib.Path(arguments.data).absolute() if arguments.data else None
        self.program = self.build / "apps" / "stoker" / "stoker"
        self.cores = len(os.sched_getaffinity(0))
        self.commit = measure.commit()
        self.runs = (work / f"run{number}" for number in itertools.count())

    def turns(self, usual):
        return 2 if self.quick else usual

    def tell(self, *columns, **more):
        measure.tell(Row(*columns, **more, commit=self.commit), self.into)

    def given(self, name):
        """A file or folder of --data; None, with a message, if it is not there."""
        if self.data and (self.data / name).exists():
            return self.data / name
        print(f"SKIPPED: rows that need {name}: set --data to a folder that has it", flush=True)
        return None

    def step_worker(self, *case):
        return measure.Worker([self.build / "bench" / "step_worker", "stoker", *case])

    @staticmethod
    def step_peer(system, *case):
        """system: a SYSTEM of step_peer.py; with "+kept" in an environment that keeps freed memory."""
        name, _, kept = system.partition("+")
        return measure.Worker([sys.executable, HERE / "step_peer.py", name, *case], os.environ | KEPT if kept else None)

    def steps_in_turns(self, case, steps, systems, turns):
        """{"stoker" and each system: {"wall" and "cpu": [ms per step, one per turn]}}."""
        with contextlib.ExitStack() as ends:
            workers = {"stoker": ends.enter_context(self.step_worker(*case))}
            workers |= {each: ends.enter_context(self.step_peer(each, *case)) for each in systems}
            for worker in workers.values():
                worker.ask(steps=max(3, steps // 4))
            found = measure.in_turns({name: lambda worker=worker: worker.ask(steps=steps) for name, worker in workers.items()},
                                     turns, f"{case[0]} {case[3]}")
        return {name: {clock: [each[clock] for each in answers] for clock in ("wall", "cpu")} for name, answers in found.items()}


def step(bench):
    """The overhead of a system: a step with next to no work."""
    promises = {"pytorch": 1.8, "pytorch-fused": None, "accelerate": 3, "lightning": 4.5}
    found = bench.steps_in_turns(("mlp", 32, 64, "fp32", 1), 300 if bench.quick else 2000, promises, bench.turns(15))
    for clock, name in (("wall", ""), ("cpu", ", CPU time of its thread")):
        for system, promise in promises.items():
            wall = clock == "wall"
            bench.tell("step", f"step of 64-64-64-10, batch 32, SGD, 1 thread{name}", system, FASTER, promise if wall else None,
                       found["stoker"][clock], found[system][clock], short="step of a small MLP, 1 thread" if wall and promise else "")


def eager(bench):
    """Steps dominated by kernels: no slower than PyTorch. CPU time if one thread does all work. The promise is against
    PyTorch as it is; PyTorch with freed memory kept, as in Stoker, shows the share of the ratio that comes from this
    setting."""
    peers = {"pytorch": "pytorch-fused", "pytorch, freed memory kept": "pytorch-fused+kept"}
    for model, batch, size, steps in (("cnn", 128, 32, 4), ("resnet18", 64, 64, 2)):
        for precision in ("fp32", "bf16"):
            for threads in sorted({1, bench.cores}):
                found = bench.steps_in_turns((model, batch, size, precision, threads), steps * threads, peers.values(), bench.turns(31))
                clock = "cpu" if threads == 1 else "wall"
                for peer, system in peers.items():
                    plain = peer == "pytorch"
                    short = f"step of {model} ({batch} x {size} px), {precision}{'' if plain else ', both keep freed memory'}"
                    shown = threads == bench.cores and (plain or precision == "fp32")
                    bench.tell("eager", f"step of {model}, {size} px, batch {batch}, {precision}, "
                               f"{'CPU time of 1 thread' if threads == 1 else f'{threads} threads'}", peer, FASTER, 0.98 if plain else None,
                               found["stoker"][clock], found[system][clock], short=short if shown else "")


def when(child, wanted):
    """Seconds from before exec to the last event for which wanted(event) is true."""
    return [at for at, line in child.lines if line.startswith("{") and wanted(json.loads(line))][-1]


def files_stoker(bench, folder, words):
    """In a cache folder of its own: a run knows nothing of an earlier one."""
    run = next(bench.runs)
    child = measure.run_child([bench.program, "train", folder, "device=cpu", f"run={run}", "--json", *words],
                              os.environ | {"STOKER_CACHE": f"{run}-cache"})
    begun = when(child, lambda e: e["event"] == "run_started")
    saved = when(child, lambda e: e["event"] == "checkpoint")
    return {"whole": saved, "training": saved - begun, "cpu": child.cpu, "resident": child.resident / 2 ** 20,
            "accuracy": [json.loads(line)["metrics"]["accuracy"] for _, line in child.lines
                         if '"evaluated"' in line and '"split":"val"' in line][-1]}


def files_pytorch(bench, folder, words, shares):
    workers, threads = shares
    child = measure.run_child([sys.executable, HERE / "train_peer.py", folder, "--out", bench.work / "peer.pt", "--workers", workers,
                               "--threads", threads, *words])
    begun, saved = (when(child, lambda e, name=name: e["event"] == name) for name in ("ready", "weights"))
    return {"whole": saved, "training": saved - begun, "cpu": child.cpu, "resident": child.resident / 2 ** 20,
            "accuracy": json.loads(child.lines[-1][1])["accuracy"]}


def files_case(bench, group, name, short, ours, theirs, epochs, promise=1.0, training_promise=None):
    """ours, theirs: (folder, words). training_promise: from the first batch to weights; None: as promise. First finds the
    peer's best workers and threads, with one epoch for each choice. Stoker finds its threads itself, as always."""
    ways = [(0, bench.cores), (1, bench.cores), (2, bench.cores), (1, max(1, bench.cores - 1))]  # workers, threads per operator
    looks = measure.in_turns({way: lambda way=way: files_pytorch(bench, theirs[0], [*theirs[1], "--epochs", 1], way)["training"]
                              for way in (ways[-1:] if bench.quick else ways)}, 1 if bench.quick else 2, f"{name}: workers")
    best = min(looks, key=lambda way: min(looks[way]))
    print(f"{name}: an epoch of PyTorch: " + ", ".join(f"{min(s):.1f} s with {workers} workers and {threads} threads"
                                                       for (workers, threads), s in looks.items()))
    our_seeds, their_seeds = itertools.count(1), itertools.count(1)  # another seed per turn, the same on both sides
    sides = {"stoker": lambda: files_stoker(bench, ours[0], [*ours[1], f"epochs={epochs}", "precision=fp32", f"seed={next(our_seeds)}"]),
             "pytorch": lambda: files_pytorch(bench, theirs[0], [*theirs[1], "--epochs", epochs, "--seed", next(their_seeds)], best)}
    found = measure.in_turns(sides, bench.turns(7), name)
    part = {key: [[each[key] for each in found[side]] for side in sides] for key in found["stoker"][0]}
    print(f"{name}: accuracy on the held-out images, median of {len(found['stoker'])} seeds (range): "
          + ", ".join(f"{side} {measure.quantity(values, '')}" for side, values in zip(sides, part["accuracy"])))
    peer, note = "pytorch", f"{best[0]} workers, {best[1]} threads"
    trained = f"{name}, {epochs} epochs"
    bench.tell(group, f"{trained}: first batch to weights", peer, FASTER, training_promise or promise, *part["training"], unit="s", note=note)
    bench.tell(group, f"{trained}: process start to weights", peer, FASTER, promise, *part["whole"], unit="s", note=note,
               short=f"{short}, {epochs} epochs from files, start to weights")
    bench.tell(group, f"{trained}: CPU time of the whole process", peer, FASTER, None, *part["cpu"], unit="s", note=note)
    bench.tell(group, f"{name}: peak resident memory", peer, SMALLER, 0.6, *part["resident"], unit="MiB", note=note,
               short=f"{short}, peak resident memory" if ours[0] == bench.demo else "")  # the short table has little room


def cifar_folders(bench, shards, images=5000):
    """Class folders of the first images of the training shards."""
    folder = bench.work / "cifar"
    left = images
    for shard in sorted(shards.glob("train-*.tar")):
        with tarfile.open(shard) as tar:
            for member in tar:
                if left == 0:
                    return folder
                if member.isfile():
                    tar.extract(member, folder, filter="data")
                    left -= 1
    return folder


def files(bench):
    """From files to weights, data included."""
    epochs = 1 if bench.quick else 3
    files_case(bench, "files", "the sample (Fashion-MNIST, 5,000 PNG)", "5,000 PNG", (bench.demo, ["batch=32"]),
               (bench.demo / "train", ["--grey", "--size", 28, "--batch", 32]), epochs)
    if shards := bench.given("cifar10"):
        folder = cifar_folders(bench, shards)
        files_case(bench, "files", "5,000 JPEG of CIFAR-10", "5,000 JPEG", (folder, ["batch=64"]), (folder, ["--size", 32, "--batch", 64]),
                   epochs)


def photographs(bench, model, training_promise):
    epochs = 1 if bench.quick else 3
    if images := bench.given("imagenet-sample"):
        folder = measure.linked_photographs(images, bench.work / "photographs" / model)
        files_case(bench, f"photographs_{model}", f"1,000 JPEG of ImageNet at 64 px, {model}", f"1,000 ImageNet JPEG at 64 px, {model}",
                   (folder, [f"model={model}", "image_size=64", "augment=resized_crop_flip", "batch=64", "cache=0"]),
                   (folder, ["--photographs", "--model", model, "--size", 64, "--batch", 64]), epochs, promise=1.3,
                   training_promise=training_promise)


def photographs_cnn(bench):
    """From photographs of usual sizes to weights: decoding takes much of the time."""
    photographs(bench, "cnn", 1.9)


def photographs_resnet18(bench):
    """The same with a larger network."""
    photographs(bench, "resnet18", 1.3)


def memory(bench):
    """Tensor bytes of a step; resident memory of a language-model run."""
    for name, case in (("cnn at 28 px, batch 32", ("cnn", 32, 28)), ("cnn at 32 px, batch 64", ("cnn", 64, 32)),
                       ("resnet18 at 64 px, batch 64", ("resnet18", 64, 64)), ("gpt, batch 12 x 64", ("gpt", 12, 64))):
        for precision in ("fp32", "bf16"):
            with bench.step_worker(*case, precision, 1) as ours, bench.step_peer("pytorch-fused", *case, precision, 1) as theirs:
                bytes_ = [[worker.ask(bytes=True)["bytes"] / 2 ** 20] for worker in (ours, theirs)]
            bench.tell("memory", f"peak tensor bytes: {name}, {precision}", "pytorch", SMALLER, 1.02, *bytes_, unit="MiB")
    if text := bench.given("tinyshakespeare/input.txt"):
        steps = 30 if bench.quick else 200
        sides = {"stoker": lambda: measure.run_child(
                     [bench.program, "train", text, f"steps={steps}", "device=cpu", "precision=fp32", "sample_tokens=0",
                      f"run={next(bench.runs)}", "--quiet"]),
                 "pytorch": lambda: measure.run_child([sys.executable, HERE / "text.py", bench.program, text, "--alone", "--steps", steps])}
        found = measure.in_turns(sides, bench.turns(7), "gpt")
        bench.tell("memory", "gpt on tinyshakespeare: peak resident memory", "pytorch", SMALLER, 0.6,
                   *([each.resident / 2 ** 20 for each in found[side]] for side in sides), unit="MiB",
                   short="gpt on 1 MB of text, peak resident memory")


def start(bench):
    """From process start until the first optimizer step is done, on the sample. Ours includes its timed trials."""
    def ours():
        child = measure.run_child([bench.program, "train", bench.demo, "steps=1", "device=cpu", f"run={next(bench.runs)}", "--json"])
        return when(child, lambda e: e["event"] == "step")

    def theirs():
        child = measure.run_child([sys.executable, HERE / "train_peer.py", bench.demo / "train", "--grey", "--size", 28, "--steps", 1,
                                   "--out", bench.work / "peer.pt"])
        return when(child, lambda e: e["event"] == "step")
    found = measure.in_turns({"stoker": ours, "pytorch": theirs}, bench.turns(9), "start")
    bench.tell("start", "process start to first step, the sample", "pytorch", SMALLER, 0.35, *found.values(), unit="s",
               note="0 workers", short="process start to the first step done")


GROUPS = {each.__name__: each for each in (step, eager, files, photographs_cnn, photographs_resnet18, memory, start)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?")
    parser.add_argument("demo", nargs="?")
    parser.add_argument("--data", default=os.environ.get("STOKER_DATA"))
    parser.add_argument("--only", choices=GROUPS, action="append")
    parser.add_argument("--into", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="2 turns and less work: checks that it runs, proves nothing")
    arguments = parser.parse_args()
    if arguments.table:
        print(measure.table(arguments.table))
        return
    if not arguments.demo:
        parser.error("BUILD and DEMO are needed")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        measure.tell_machine(bench.program, PACKAGES)
        for name in arguments.only or GROUPS:
            print(f"\n{name}: {' '.join(GROUPS[name].__doc__.split())} {measure.load()}", flush=True)
            GROUPS[name](bench)
        print(f"\n{measure.load()} at the end")


if __name__ == "__main__":
    main()
