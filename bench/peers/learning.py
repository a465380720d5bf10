#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether Stoker learns what plain PyTorch learns: seeds of `stoker train` and of its twin (twins.py: the same network, initial
distributions, augmentation, loss, optimizer, schedule, averages, batch and epochs in PyTorch's words) on four data sets.

    bench/peers/learning.py STOKER [--data DIR] [--quick] [--seeds 3] [--threads N] [--only NAME] [--twin KEY=VALUE]

STOKER: the command line's binary. DIR (default: STOKER_DATA): a folder with cifar10/, tinyshakespeare/ and tabular/; what it lacks is
left out aloud. Needs the torch of tools/find_torch and the packages of bench/peers/requirements.txt on PYTHONPATH.

The learning rates of both must be equal step by step (1e-5 relative; the twin's are torch.optim.lr_scheduler's). Each end figure has a
verdict: the means of the two systems may differ by what seeds alone explain, by Student's t test at 1 % (two-sided, pooled variance s:
t * s * sqrt(2/n), with 3 and 3 seeds 3.76 s). Equal systems fail one of the eleven verdicts in about one of ten benches; seeds are
fixed, so a bench repeats on the same machine. --twin gives the twin alone a value that the plan has not (dropout=0): shows what the
bench notices. Exit code 1: a verdict failed.
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
    """How far means of as many seeds may lie apart. smallest: what one sample more or less changes, for figures that count."""
    spread = pooled_deviation(ours, theirs)
    return max(smallest, STUDENT[2 * len(ours) - 2] * spread * (2 / len(ours)) ** 0.5)


def cifar_subset(shards, folder, of_class):
    """The first images of each class, in the order of the shards, as class folders. of_class: by split, how many."""
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
    """Both systems seed by seed; whether all figures of the data set hold."""
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
    held = [same_rates(ours[0].rates, theirs[0].rates)]
    for figure in ours[0].figures:
        held.append(judged(figure, [each.figures[figure] for each in ours], [each.figures[figure] for each in theirs],
                           one if figure == "accuracy" else 0.0))
    return all(held)


def same_rates(ours, theirs):
    off = max(abs(a - b) / max(abs(a), abs(b)) for a, b in zip(ours, theirs, strict=True))
    print(f"  {'rates':<10} of {len(ours)} steps, {min(ours):.3g} to {max(ours):.3g}, off by {off:.0e} of each at most: "
          f"{'holds' if off <= 1e-5 else 'OUTSIDE'}")
    return off <= 1e-5


def judged(figure, ours, theirs, smallest):
    difference, allowed = statistics.mean(ours) - statistics.mean(theirs), allowance(ours, theirs, smallest)
    holds = abs(difference) <= allowed

    def row(values):
        return f"{' '.join(f'{each:.4f}' for each in values)} mean {statistics.mean(values):.4f}"
    print(f"  {figure:<10} stoker {row(ours)} | pytorch {row(theirs)} | difference {difference:+.4f}, seeds explain "
          f"{allowed:.4f}: {'holds' if holds else 'OUTSIDE'}", flush=True)
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("STOKER_DATA"))
    parser.add_argument("--quick", action="store_true", help="shorter runs on less data: shows that the bench works")
    parser.add_argument("--seeds", type=int, default=3, choices=range(2, 11))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", choices=DATA_SETS, help="one data set")
    parser.add_argument("--twin", metavar="KEY=VALUE", action="append", default=[], help="a value of the plan that the twin alone has")
    arguments = parser.parse_args()
    arguments.stoker = arguments.stoker.absolute()
    torch.set_num_threads(arguments.threads)
    measure.tell_machine(arguments.stoker, ["torch", "torchvision"])
    print(f"{arguments.threads} threads, fp32, {arguments.seeds} seeds a system{', --quick' if arguments.quick else ''}"
          f"{', the twin alone with ' + ' '.join(arguments.twin) if arguments.twin else ''}")
    needs = {"CIFAR-10, small": "cifar10", "tinyshakespeare": "tinyshakespeare", "adult": "tabular"}
    held = []
    with tempfile.TemporaryDirectory() as folder:
        for name in [arguments.only] if arguments.only else DATA_SETS:
            if name in needs and not (arguments.data and (arguments.data / needs[name]).is_dir()):
                print(f"\n{name}: left out, for want of {needs[name]}/ in --data DIR or STOKER_DATA")
                continue
            held.append(compare(name, DATA_SETS[name], arguments, pathlib.Path(folder)))
    print(f"\n{sum(held)} of {len(held)} data sets: Stoker and PyTorch end where seeds alone put them; {measure.load()} at the end")
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
