#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The thread budget on the demo's sample with model cnn: images per second for {1, 2} threads per operator times {0, 1,
2} loader threads, and for the budget that `stoker train` chooses. Runs take turns, so that a busy minute affects all of
them. Ratios are per turn, with the 95 % interval of their median.

    bench/train/threads_bench.py [STOKER [TURNS [STEPS]]]     default build/release/apps/stoker/stoker, 9, 50: 4 minutes
"""
import collections
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

HOME = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "bench/peers"))
import measure  # noqa: E402

SAMPLE = HOME / "examples/data/fashion-mnist-6000.tar"
BUDGETS = [(intra_op, threads) for intra_op in (1, 2) for threads in (0, 1, 2)]
WARM = 10  # steps that do not count


def train(stoker, data, run, steps, settings):
    """Images per second of a run, its threads (operator, loader), and its memory layout."""
    command = [stoker, "train", data, "model=cnn", "precision=fp32", "val=0", f"steps={steps}", "tensorboard=off",
               f"run={run}", "--quiet", *settings]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"threads_bench: {' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()}")
    with open(run / "metrics.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "step"][WARM:]
    rate = sum(int(row["samples"]) for row in rows) / sum(float(row["seconds"]) for row in rows)
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))["plan"]
    return rate, tuple(int(plan[key]["value"]) for key in ("intra_op", "threads")), plan["layout"]["value"]


def take_turns(stoker, turns, steps):
    """{budget: results of train(), one per turn}; None: the default budget."""
    found = {budget: [] for budget in [*BUDGETS, None]}
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as root:
        root = pathlib.Path(root)
        with tarfile.open(SAMPLE) as tar:
            tar.extractall(root / "data", filter="data")
        for turn in range(turns):
            for at, budget in enumerate(found) if turn % 2 == 0 else reversed(list(enumerate(found))):
                settings = [] if budget is None else [f"intra_op={budget[0]}", f"threads={budget[1]}"]
                found[budget].append(train(stoker, root / "data/train", root / f"run-{turn}-{at}", steps, settings))
    return found


def spread(values):
    return f"{statistics.median(values):6.0f} ({min(values):.0f} to {max(values):.0f})"


def ratio(mine, theirs):
    """Median ratio of paired figures, with its interval."""
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    low, high = measure.median_interval(ratios)
    return f"{statistics.median(ratios):.2f} [{low:.2f} to {high:.2f}]"


def main():
    stoker = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HOME / "build/release/apps/stoker/stoker").resolve()
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    found = take_turns(stoker, turns, steps)
    rates = {budget: [rate for rate, *_ in runs] for budget, runs in found.items()}
    best = max(BUDGETS, key=lambda budget: statistics.median(rates[budget]))
    print(f"cnn on the demo's sample, fp32, {steps} steps of 32 images, {turns} turns\n"
          "images per second: median (range); of the best: median ratio per turn [95 % interval]")
    for budget in BUDGETS:
        of_best = ratio(rates[budget], rates[best]) if budget != best else "the best by its median, chosen in these turns"
        print(f"  {budget[0]} threads per operator, {budget[1]} loading: {spread(rates[budget])}, {of_best}")
    print(f"  the default:                     {spread(rates[None])}, {ratio(rates[None], rates[best])}")
    known = [(rate, rates[threads][turn]) for turn, (rate, threads, _) in enumerate(found[None]) if threads in rates]
    if known:
        print(f"    against the same budget as a setting, in the turns that chose it: {ratio(*zip(*known))}, {len(known)} turns")
    for ((intra_op, threads), layout), count in sorted(collections.Counter(each[1:] for each in found[None]).items()):
        print(f"    it chose {intra_op} and {threads}, {layout}, in {count} of {turns} runs")
    layouts = collections.Counter(layout for budget in BUDGETS for *_, layout in found[budget])
    print(f"  the fixed budgets ran in {', '.join(f'{layout} {count} times' for layout, count in sorted(layouts.items()))}")


if __name__ == "__main__":
    main()
