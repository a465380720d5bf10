#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of Stoker on the same work, in turns, with fixed threads: is NEW slower than OLD?

    bench/peers/builds.py OLD NEW [--demo FOLDER] [--data FOLDER] [--only GROUP] [--quick]

OLD, NEW: build folders with the command line, step_worker and loader_bench. --demo: the unpacked sample
(tools/demo_data). --data: a folder with imagenet-sample/, cifar10/ and tabular/; rows without their data print a skip
message. Each figure is new / old, below 1 if the new build is faster: CPU time per step of one thread, CPU time per
sample of a loader, CPU time of a whole command. Exits with 1 if a row is slower by more than 2 % over its whole 95 %
interval.
"""
import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import statistics
import sys
import tempfile

import measure

STEPS = (("mlp", 32, 64, 3000), ("cnn", 128, 32, 5), ("resnet18", 64, 64, 2), ("gpt", 12, 64, 10))  # model, batch, size, steps
RUNS = {"demo": ["epochs=1"], "tabular/california_housing.csv": ["target=median_house_value", "epochs=3"]}
LIMIT = 1.02


@dataclasses.dataclass
class Bench:
    sides: dict  # {"old": build folder, "new": build folder}
    pairs: int
    demo: pathlib.Path | None
    data: pathlib.Path | None
    quick: bool
    slower: list = dataclasses.field(default_factory=list)

    def given(self, name):
        """A file or folder of --data, or the sample; None, with a message, if it is not there."""
        path = self.demo if name == "demo" else self.data / name if self.data else None
        if path and path.exists():
            return path.absolute()
        print(f"SKIPPED: {name}: set --{'demo' if name == 'demo' else 'data'}", flush=True)
        return None

    def compare(self, what, unit, sides):
        """sides: {"old" and "new": callable that measures once}."""
        found = measure.in_turns(sides, self.pairs, what)
        ratios = [new / old for new, old in zip(found["new"], found["old"])]
        low, high = measure.median_interval(ratios)
        if low > LIMIT:
            self.slower.append(what)
        print(f"{what}: new / old {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}, {len(ratios)} pairs); "
              f"new {measure.quantity(found['new'], unit)}, old {measure.quantity(found['old'], unit)}", flush=True)


def step(bench):
    """CPU time per step, one thread, fp32."""
    for model, batch, size, steps in STEPS:
        with contextlib.ExitStack() as ends:
            workers = {side: ends.enter_context(measure.Worker([build / "bench" / "step_worker", "stoker", model, batch, size, "fp32", 1]))
                       for side, build in bench.sides.items()}
            for worker in workers.values():
                worker.ask(steps=3)
            bench.compare(f"step of {model}, batch {batch}", "ms",
                          {side: lambda worker=worker: worker.ask(steps=steps)["cpu"] for side, worker in workers.items()})


def loader(bench):
    """CPU time per sample of the loader, one thread."""
    seconds = 0.5 if bench.quick else 3
    for what, mode, data in (("photographs to crops of 224 px", "loader", "imagenet-sample"),
                             ("decoding of photographs", "decode", "imagenet-sample"),
                             ("CIFAR-10 in memory", "ram", "cifar10"), ("a table in memory", "table", "")):
        path = bench.given(data) if data else pathlib.Path()
        if not path:
            continue
        words = [f"mode={mode}", f"seconds={seconds}", "threads=1", "path=own", *([f"data={path}"] if data else [])]
        bench.compare(what, "us", {side: lambda build=build: 1e6 / json.loads(measure.run_child(
            [build / "bench" / "loader_bench", *words]).lines[-1][1])["per_cpu_second"] for side, build in bench.sides.items()})


def command(bench):
    """CPU time of `stoker train` from process start to its end, fixed threads."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = itertools.count()
        for name, words in RUNS.items():
            if not (path := bench.given(name)):
                continue
            fixed = ["device=cpu", "precision=fp32", "intra_op=1", "threads=0", "--quiet", *words]
            bench.compare(f"stoker train {name} {' '.join(words)}", "s", {side: lambda build=build: measure.run_child(
                [build / "apps" / "stoker" / "stoker", "train", path, f"run=run{next(numbers)}", *fixed], folder=folder).cpu
                for side, build in bench.sides.items()})


GROUPS = {each.__name__: each for each in (step, loader, command)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--demo", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("STOKER_DATA"))
    parser.add_argument("--only", choices=GROUPS, action="append")
    parser.add_argument("--quick", action="store_true", help="2 turns and less work: checks that it runs, proves nothing")
    arguments = parser.parse_args()
    bench = Bench({"old": arguments.old.absolute(), "new": arguments.new.absolute()}, 2 if arguments.quick else 12, arguments.demo,
                  arguments.data, arguments.quick)
    for side, build in bench.sides.items():
        print(f"{side}: ", end="", flush=True)
        measure.tell_machine(build / "apps" / "stoker" / "stoker")
    for name in arguments.only or GROUPS:
        print(f"\n{name}: {GROUPS[name].__doc__} {measure.load()}", flush=True)
        GROUPS[name](bench)
    print(f"\nslower by more than {LIMIT - 1:.0%}: {', '.join(bench.slower) or 'none'}; {measure.load()} at the end")
    return bool(bench.slower)


if __name__ == "__main__":
    sys.exit(main())
