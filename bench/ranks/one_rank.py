#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torchrun costs a run of one rank: `torchrun --no-python --nproc-per-node=1 stoker train ...` against
`stoker train ...`, in turns, at a step of about 10 ms.

    bench/ranks/one_rank.py STOKER [--pairs N] [--steps N] [--quick]

The time of a step is that of the loop, as the run's own log has it, after the first steps. Beside the wall time, which
other programs disturb, it compares the CPU time of the training thread; the promise is of that one. Needs the torch of
tools/find_torch on PYTHONPATH; prints SKIPPED and exits with 77 without it.
"""
import argparse
import importlib.util
import pathlib
import statistics
import sys
import tempfile

import runs
import measure

PROMISE = 1.01
FIRST = 20  # steps that do not count
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node=1", "--standalone"]
# 512 inputs and 3 hidden layers on 200 rows: about 10 ms on a core.
WORDS = ["target=y", "bins=1", "hidden=512", "layers=3", "dropout=0", "batch=200", "optimizer=sgd", "schedule=constant", "warmup=0",
         "lr=1e-6", "lr_scale=none"]


def take(arguments, work, number, starter):
    """Milliseconds per step of a run: wall time, and CPU time of the training thread."""
    words = [*WORDS, *runs.PLAIN, f"steps={FIRST + arguments.steps}"]
    run = runs.train(arguments.stoker.absolute(), work / "table.csv", work / f"run{number}", words, starter)
    return {"wall": 1e3 * statistics.median(run.step_seconds(FIRST)), "CPU": 1e3 * run.cpu_seconds()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="2 pairs of 50 steps: checks that it runs, proves nothing")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.pairs, arguments.steps = 2, 50
    if importlib.util.find_spec("torch") is None:
        print("SKIPPED: Python has no torch: see PYTHONPATH above")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        work, count = pathlib.Path(folder), 0
        runs.made_table(work / "table.csv", 2600, columns=256)
        measure.tell_machine(arguments.stoker, ["torch"])

        def side(starter):
            nonlocal count
            count += 1
            return take(arguments, work, count, starter)
        found = measure.in_turns({"torchrun": lambda: side(TORCHRUN), "plain": lambda: side([])}, arguments.pairs, "one rank")
        for clock, promise in (("wall", None), ("CPU", PROMISE)):
            row = measure.Row("ranks", f"step of one rank under torchrun, {clock} time", "a plain run", "ours / theirs", promise,
                              [each[clock] for each in found["torchrun"]], [each[clock] for each in found["plain"]])
            print(row.text(), flush=True)
        print(f"{measure.load()} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
