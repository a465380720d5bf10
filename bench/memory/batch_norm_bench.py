#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What small forward passes do to a network with batch norm, and what helps: model cnn on a small set of real images,
trained from scratch and fine-tuned, with the batch in one pass or in small ones. Prints the accuracy on the test split,
one figure per seed. The optimizer's steps, learning rates and order of samples are equal in all rows of a block, but
for "batch=N".

    bench/memory/batch_norm_bench.py STOKER [--seeds 3] [--quick]

STOKER: the command line's binary. The data is the embedded sample of Fashion-MNIST.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/data/fashion-mnist-6000.tar"
BATCH = 64
FIXED = ["model=cnn", "device=cpu", "threads=0", "intra_op=1", "precision=fp32", "layout=channels_last", "val=0",
         "tensorboard=off", "--quiet"]

# name, options. Each row is trained once per seed.
SCRATCH = [
    *((f"batch norm, passes of {size}", [f"batch={BATCH}", f"microbatch={size}"]) for size in (64, 32, 8, 4, 2)),
    ("batch norm, batch=8 in one pass", ["batch=8"]),
    *((f"group norm, passes of {size}", [f"batch={BATCH}", f"microbatch={size}", "norm=group"]) for size in (64, 2)),
]
# The same from the weights of the first row of SCRATCH with the same seed.
TUNED = [
    ("batch norm, passes of 64", [f"batch={BATCH}"]),
    ("batch norm, passes of 2", [f"batch={BATCH}", "microbatch=2"]),
    ("frozen statistics, passes of 64", [f"batch={BATCH}", "freeze_norm=on"]),
    ("frozen statistics, passes of 2", [f"batch={BATCH}", "microbatch=2", "freeze_norm=on"]),
]


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def accuracy(stoker, data, folder, options):
    """Of the last weights on the test split, percent."""
    run([stoker, "train", data, f"run={folder}", *FIXED, *options])
    return 100 * json.loads(run([stoker, "eval", folder, "--checkpoint", "last", "--json"]))["metrics"]["accuracy"]


def row(name, values, seconds):
    shown = " ".join(f"{each:5.1f}" for each in values)
    print(f"  {name:<34} mean {statistics.mean(values):5.1f} %   seeds {shown}   {seconds / len(values):4.0f} s each", flush=True)


def block(title, rows, options_of, arguments, data, work):
    print(title, flush=True)
    for number, (name, options) in enumerate(rows):
        began, values = time.perf_counter(), []
        for seed in range(1, arguments.seeds + 1):
            folder = work / f"{title.partition(':')[0]}-{number}-{seed}"
            values.append(accuracy(arguments.stoker, data, folder, [*options, *options_of(seed), f"seed={seed}"]))
        row(name, values, time.perf_counter() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one seed, few steps: checks that the benchmark works")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds = 1
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as root:
        work = pathlib.Path(root)
        with tarfile.open(SAMPLE) as tar:
            tar.extractall(work / "demo", filter="data")
        data, epochs = work / "demo", 3
        long, short = (["steps=5"], ["steps=3"]) if arguments.quick else ([f"epochs={epochs}"], ["epochs=1"])
        print(f"Fashion-MNIST, the embedded sample; batches of {BATCH}, model cnn, one thread\n")
        block(f"scratch: {epochs} epochs from random weights", SCRATCH, lambda seed: long, arguments,
              data, work)
        block("fine-tuning: 1 epoch from the weights of the first row, seed by seed", TUNED,
              lambda seed: [f"weights={work / f'scratch-0-{seed}'}", *short], arguments, data, work)


if __name__ == "__main__":
    main()
