#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the final results of `stoker train` and its twin in plain PyTorch, over several seeds on four data sets.
The twin (twins.py) has the same network, initial distributions, augmentation, loss, optimizer, schedule, averages,
batch and epochs.

    bench/peers/learning.py STOKER [--data DIR] [--quick] [--seeds 3] [--threads N] [--only NAME] [--twin KEY=VALUE]

STOKER: the command line's binary. DIR (default: STOKER_DATA): a folder with cifar10/, tinyshakespeare/ and tabular/;
data sets that are not there print a skip message. Needs the torch of tools/find_torch and the packages of
bench/peers/requirements.txt on PYTHONPATH.

The learning rates of both must be equal step by step (1e-5 relative; the twin's come from torch.optim.lr_scheduler).
Each final figure has a verdict: the means of the two systems may differ by what seeds alone explain, by Student's t
test at 1 % (two-sided; with the pooled deviation s: t * s * sqrt(2/n), which is 3.76 s for 3 seeds per system). Equal
systems fail one of the eleven verdicts in about one of ten runs. Seeds are fixed, so a run repeats on the same machine.
--twin gives only the twin another value (dropout=0), which shows what the benchmark detects. Exit code 1: a verdict
failed.
"""
import argparse
import os
import pathlib
import statistics
import sys
import tarfile
import tempfile
import time

import torch

import measure
import twins

SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "data" / "fashion-mnist-6000.tar"
# Student's t, two-sided 1 %, by degrees of freedom (Abramowitz and Stegun, table 26.10).
STUDENT = {2: 9.925, 4: 4.604, 6: 3.707, 8: 3.355, 10: 3.169, 12: 3.055, 14: 2.977, 16: 2.921, 18: 2.878}


def pooled_deviation(ours, theirs):
    return ((statistics.variance(ours) + statistics.variance(theirs)) / 2) ** 0.5


def allowance(ours, theirs, smallest=0.0):
    """How far the means may be apart. smallest: the change by one sample more or less, for figures that count
    samples."""
    spread = pooled_deviation(ours, theirs)
    return max(smallest, STUDENT[2 * len(ours) - 2] * spread * (2 / len(ours)) ** 0.5)


def cifar_subset(shards, folder, of_class):
    """Class folders of the first images of each class, in the order of the shards. of_class: {split: images per
    class}."""
    for split, count in of_class.items():
        taken = {}
        for shard in sorted(shards.glob(f"{split}-*.tar")):
            if len(taken) == 10 and min(taken.values()) >= count:
                break
            with tarfile.open(shard) as tar:
                for member in tar:
                    name, _, file = member.name.rpartition("/")
                    if taken.setdefault(name, 0) < count and member.isfile():
                        taken[name] += 1
                        (folder / split / name).mkdir(parents=True, exist_ok=True)
                        (folder / split / name / file).write_bytes(tar.extractfile(member).read())
    return folder


def demo(work, data, quick):
    with tarfile.open(SAMPLE) as tar:
        tar.extractall(work / "demo", filter="data")
    folder = work / "demo"
    return folder, [f"epochs={1 if quick else 5}", "val=0"], lambda plan: twins.images(folder, plan), 1e-3


def cifar(work, data, quick):
    train, test = (100, 50) if quick else (500, 200)
    folder = cifar_subset(data / "cifar10", work / "cifar", {"train": train, "test": test})
    return folder, [f"epochs={2 if quick else 8}", "val=0"], lambda plan: twins.images(folder, plan), 0.1 / test


def tinyshakespeare(work, data, quick):
    file = data / "tinyshakespeare" / "input.txt"
    steps = 60 if quick else 500
    return file, [f"steps={steps}", "sample_tokens=0", f"eval_every={steps}"], lambda plan: twins.text(file, plan), 0.0


def adult(work, data, quick):
    train, test = data / "tabular" / "adult-train.csv", data / "tabular" / "adult-test.csv"
    words = ["target=15", "header=off", f"test={test}", "label_strip=.", "val=0"] + (["epochs=3"] if quick else [])
    return train, words, lambda plan: twins.table(train, test, plan), 1 / 16281


DATA_SETS = {"demo sample": demo, "CIFAR-10, small": cifar, "tinyshakespeare": tinyshakespeare, "adult": adult}


def compare(name, open_set, arguments, work):
    """Trains both systems seed by seed; whether all figures of the data set are within the allowance."""
    (work / name).mkdir()
    data, words, twin, one = open_set(work / name, arguments.data, arguments.quick)
    words += ["device=cpu", "precision=fp32", "threads=0", f"intra_op={arguments.threads}", "tensorboard=off"]
    ours, theirs, begin = [], [], time.perf_counter()
    for seed in range(1, arguments.seeds + 1):
        end, plan = twins.stoker(arguments.stoker, data, work / name / f"run{seed}", [*words, f"seed={seed}"])
        plan |= dict(each.split("=", 1) for each in arguments.twin)
        torch.manual_seed(seed)
        ours.append(end)
        theirs.append(twins.train(twin(plan), plan))
    print(f"\n{name}: {' '.join(f'{key} {plan[key]}' for key in ('model', 'batch', 'epochs', 'steps', 'optimizer', 'schedule'))}; "
          f"{time.perf_counter() - begin:.0f} s, {measure.load()}", flush=True)
    verdicts = [same_rates(ours[0].rates, theirs[0].rates)]
    for figure in ours[0].figures:
        verdicts.append(same_mean(figure, [each.figures[figure] for each in ours], [each.figures[figure] for each in theirs],
                                  one if figure == "accuracy" else 0.0))
    return all(verdicts)


def same_rates(ours, theirs):
    off = max(abs(a - b) / max(abs(a), abs(b)) for a, b in zip(ours, theirs, strict=True))
    print(f"  {'rates':<10} of {len(ours)} steps, {min(ours):.3g} to {max(ours):.3g}, largest relative difference {off:.0e}: "
          f"{'within' if off <= 1e-5 else 'OUTSIDE'}")
    return off <= 1e-5


def same_mean(figure, ours, theirs, smallest):
    difference, allowed = statistics.mean(ours) - statistics.mean(theirs), allowance(ours, theirs, smallest)
    within = abs(difference) <= allowed

    def row(values):
        return f"{' '.join(f'{each:.4f}' for each in values)} mean {statistics.mean(values):.4f}"
    print(f"  {figure:<10} stoker {row(ours)} | pytorch {row(theirs)} | difference {difference:+.4f}, seeds explain "
          f"{allowed:.4f}: {'within' if within else 'OUTSIDE'}", flush=True)
    return within


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("STOKER_DATA"))
    parser.add_argument("--quick", action="store_true", help="shorter runs on less data: checks that the benchmark works")
    parser.add_argument("--seeds", type=int, default=3, choices=range(2, 11))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", choices=DATA_SETS, help="only this data set")
    parser.add_argument("--twin", metavar="KEY=VALUE", action="append", default=[], help="another value of the plan for the twin only")
    arguments = parser.parse_args()
    arguments.stoker = arguments.stoker.absolute()
    torch.set_num_threads(arguments.threads)
    measure.tell_machine(arguments.stoker, ["torch", "torchvision"])
    print(f"{arguments.threads} threads, fp32, {arguments.seeds} seeds per system{', --quick' if arguments.quick else ''}"
          f"{', only the twin with ' + ' '.join(arguments.twin) if arguments.twin else ''}")
    needs = {"CIFAR-10, small": "cifar10", "tinyshakespeare": "tinyshakespeare", "adult": "tabular"}
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        for name in [arguments.only] if arguments.only else DATA_SETS:
            if name in needs and not (arguments.data and (arguments.data / needs[name]).is_dir()):
                print(f"\nSKIPPED: {name}: no {needs[name]}/ in --data DIR or STOKER_DATA")
                continue
            verdicts.append(compare(name, DATA_SETS[name], arguments, pathlib.Path(folder)))
    print(f"\n{sum(verdicts)} of {len(verdicts)} data sets: Stoker and PyTorch differ by no more than seeds explain; "
          f"{measure.load()} at the end")
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()
