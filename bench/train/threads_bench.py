#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The thread budget on the demo's sample with model cnn: pictures a second for {1, 2} threads an operator times {0, 1, 2}
loader threads, and for what `stoker train` chooses by itself. Runs take turns, so that a busy minute hits all of them.

    bench/train/threads_bench.py [STOKER [REPEATS [STEPS]]]     default build/release/apps/stoker/stoker, 5, 60
"""
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

HOME = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = HOME / "examples/data/fashion-mnist-6000.tar"
BUDGETS = [(intra_op, threads) for intra_op in (1, 2) for threads in (0, 1, 2)]
WARM = 10  # steps that do not count


def train(stoker, data, run, steps, settings):
    """Pictures a second of a run, and the threads it had: (operator, loader)."""
    command = [stoker, "train", data, "model=cnn", "precision=fp32", "val=0", f"steps={steps}", "tensorboard=off",
               f"run={run}", "--quiet", *settings]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"threads_bench: {' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()}")
    rows = [row for row in csv.DictReader(open(run / "metrics.csv")) if row["kind"] == "step"][WARM:]
    rate = sum(int(row["samples"]) for row in rows) / sum(float(row["seconds"]) for row in rows)
    plan = json.loads((run / "plan.json").read_text())["plan"]
    return rate, tuple(int(plan[key]["value"]) for key in ("intra_op", "threads"))


def main():
    stoker = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HOME / "build/release/apps/stoker/stoker").resolve()
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    rates = {budget: [] for budget in BUDGETS}
    default, chosen = [], []
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as root:
        root = pathlib.Path(root)
        with tarfile.open(SAMPLE) as tar:
            tar.extractall(root / "data", filter="data")
        data = root / "data/train"
        for repeat in range(repeats):
            turn = [*BUDGETS, None]
            for budget in turn if repeat % 2 == 0 else reversed(turn):
                settings = [] if budget is None else [f"intra_op={budget[0]}", f"threads={budget[1]}"]
                rate, threads = train(stoker, data, root / f"run-{repeat}-{turn.index(budget)}", steps, settings)
                if budget is None:
                    default.append(rate)
                    chosen.append(threads)
                else:
                    rates[budget].append(rate)
    best = max(BUDGETS, key=lambda budget: statistics.median(rates[budget]))
    print(f"cnn on the demo's sample, fp32, {steps} steps of 32 pictures, {repeats} turns; pictures a second, median (range)")
    for budget in BUDGETS:
        ratio = statistics.median(mine / theirs for mine, theirs in zip(rates[budget], rates[best]))
        print(f"  {budget[0]} threads an operator, {budget[1]} loading: {row_of(rates[budget])}, {ratio:.2f} of the best")
    ratios = [mine / theirs for mine, theirs in zip(default, rates[best])]
    print(f"  the default:                    {row_of(default)}, {statistics.median(ratios):.2f} of the best, {min(ratios):.2f} to {max(ratios):.2f}")
    for budget in sorted(set(chosen)):
        print(f"    it chose {budget[0]} and {budget[1]} in {chosen.count(budget)} of {repeats} runs")


def row_of(values):
    return f"{statistics.median(values):6.0f} ({min(values):.0f} to {max(values):.0f})"


if __name__ == "__main__":
    main()
