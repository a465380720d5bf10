#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares runs in fp32, in bf16 and in fp16 with a gradient scaler, of the same seeds, by Stoker and its PyTorch twin.
The twin is in twins.py. The runs are the CNN on the demo sample and a GPT on tinyshakespeare.

    bench/peers/amp.py STOKER [--data DIR] [--quick] [--seeds 3] [--threads N] [--twins fp32,bf16]

DIR (default: STOKER_DATA): a folder with tinyshakespeare/; without it the GPT prints a skip message. Networks and runs
are small, because fp16 on a CPU without fp16 instructions takes 10 to 30 times as long as fp32. For the same reason the
twin runs in fp16 only if --twins says so. Needs the same packages as learning.py.

Differences are paired: weights, order and augmentation of a seed are the same in each precision. Verdict: the mean
held-out loss differs from fp32's by no more than seeds alone explain (learning.py's test). Exit code 1: a verdict
failed.
"""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch

import learning
import measure
import twins

PRECISIONS = ("fp32", "bf16", "fp16")


def cnn(work, data, quick):
    folder, _, twin, _ = learning.demo(work, data, quick)
    return folder, [f"steps={20 if quick else 100}", "val=0"], twin


def gpt(work, data, quick):
    file, steps = data / "tinyshakespeare" / "input.txt", 30 if quick else 300
    words = [f"steps={steps}", "context=32", "layers=2", "width=64", "sample_tokens=0", f"eval_every={steps}", "val=0.02"]
    return file, words, lambda plan: twins.text(file, plan)


RUNS = {"cnn, demo sample": cnn, "gpt, tinyshakespeare": gpt}
HEAD = ("| run | system | precision | held-out loss | to fp32, by seed | seeds explain | accuracy | steps skipped | last scale | |\n"
        "|---|---|---|---|---|---|---|---|---|---|")


def ends_of(open_run, arguments, work):
    """The ends of all seeds, by system and precision."""
    work.mkdir()
    data, words, twin = open_run(work, arguments.data, arguments.quick)
    words += ["device=cpu", "threads=0", f"intra_op={arguments.threads}", "tensorboard=off"]
    ends = {}
    for seed in range(1, arguments.seeds + 1):
        for precision in PRECISIONS:
            end, plan = twins.stoker(arguments.stoker, data, work / f"{precision}-{seed}",
                                     [*words, f"seed={seed}", f"precision={precision}"])
            ends.setdefault(("stoker", precision), []).append(end)
            if precision in arguments.twins:
                torch.manual_seed(seed)
                ends.setdefault(("pytorch", precision), []).append(twins.train(twin(plan), plan))
    return ends


def row(name, system, precision, ends):
    """A row of the table, and whether its verdict is good."""
    def losses(of):
        return [each.figures["loss"] for each in ends[system, of]]
    mine, accuracy = losses(precision), [each.figures.get("accuracy") for each in ends[system, precision]]
    cells = [name, system, precision, f"{statistics.mean(mine):.4f} ± {statistics.stdev(mine):.4f}"]
    within = True
    if precision == "fp32":
        cells += ["-", "-"]
    else:
        differences = [half - full for half, full in zip(mine, losses("fp32"))]
        allowed = learning.allowance(mine, losses("fp32"))
        within = abs(statistics.mean(differences)) <= allowed  # False for NaN
        cells += [f"{statistics.mean(differences):+.4f} ± {statistics.stdev(differences):.4f}", f"{allowed:.4f}"]
    cells.append("-" if None in accuracy else f"{100 * statistics.mean(accuracy):.2f} %")
    if precision == "fp16":
        cells += [", ".join(str(each.skipped) for each in ends[system, precision]),
                  ", ".join(f"{each.scale:g}" for each in ends[system, precision])]
    else:
        cells += ["-", "-"]
    cells.append("" if precision == "fp32" else "within" if within else "OUTSIDE")
    return f"| {' | '.join(cells)} |", within


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("STOKER_DATA"))
    parser.add_argument("--quick", action="store_true", help="shorter runs: checks that the benchmark works")
    parser.add_argument("--seeds", type=int, default=3, choices=range(2, 11))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--twins", default="fp32,bf16", help="precisions that PyTorch also runs in")
    arguments = parser.parse_args()
    arguments.stoker, arguments.twins = arguments.stoker.absolute(), arguments.twins.split(",")
    torch.set_num_threads(arguments.threads)
    measure.tell_machine(arguments.stoker, ["torch", "torchvision"])
    print(f"{arguments.threads} threads, {arguments.seeds} seeds{', --quick' if arguments.quick else ''}; mean ± standard deviation "
          f"over seeds\n\n{HEAD}", flush=True)
    verdicts, begin = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, open_run in RUNS.items():
            if open_run is gpt and not (arguments.data and (arguments.data / "tinyshakespeare").is_dir()):
                print(f"SKIPPED: {name}: no tinyshakespeare/ in --data DIR or STOKER_DATA")
                continue
            ends = ends_of(open_run, arguments, pathlib.Path(folder) / open_run.__name__)
            for system, precision in sorted(ends, key=lambda key: (key[0] != "stoker", PRECISIONS.index(key[1]))):
                line, within = row(name, system, precision, ends)
                verdicts.append(within)
                print(line, flush=True)
    print(f"\n{time.perf_counter() - begin:.0f} s, {measure.load()} at the end")
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()
