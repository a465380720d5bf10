#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recomputation buys in a whole training: batch b without it, batch b with it, and the largest batch that it makes
room for in the memory of the first row. ResNet-18 on a small set of real images; prints peak memory of tensors, time
and accuracy on the test split.

    bench/memory/recompute_table.py STOKER [--seeds 3] [--quick]

STOKER: the command line's binary. The data is the embedded sample of Fashion-MNIST. The learning rate follows the batch
(lr_scale). Rows 1 and 2 must have equal weights: exits with 1 if not.
"""
import argparse
import hashlib
import json
import pathlib
import statistics
import sys
import tarfile
import tempfile
import time

from batch_norm_bench import SAMPLE, run

BATCH = 64
FIXED = ["model=resnet18", "image_size=32", "device=cpu", "threads=0", "intra_op=1", "precision=fp32", "layout=channels_last", "val=0",
         "tensorboard=off", "--quiet"]


class Trained:
    def __init__(self, stoker, data, folder, options):
        began = time.perf_counter()
        run([stoker, "train", data, f"run={folder}", *FIXED, *options])
        self.seconds = time.perf_counter() - began
        self.accuracy = 100 * json.loads(run([stoker, "eval", folder, "--checkpoint", "last", "--json"]))["metrics"]["accuracy"]
        self.peak = json.loads((folder / "artifacts" / "memory.json").read_text(encoding="utf-8"))["peak"]
        self.batch = int(json.loads((folder / "plan.json").read_text(encoding="utf-8"))["plan"]["batch"]["value"])
        self.weights = hashlib.sha256((folder / "checkpoints" / "last" / "weights.safetensors").read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one seed, few steps: checks that the benchmark works")
    arguments = parser.parse_args()
    seeds = 1 if arguments.quick else arguments.seeds
    length = ["steps=4"] if arguments.quick else ["epochs=3"]
    rows = {"without": [], "with": [], "largest with": []}
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as root:
        work = pathlib.Path(root)
        with tarfile.open(SAMPLE) as tar:
            tar.extractall(work / "demo", filter="data")
        for seed in range(1, seeds + 1):
            def train(name, *options):
                rows[name].append(Trained(arguments.stoker, work / "demo", work / f"{name}-{seed}", [*options, *length, f"seed={seed}"]))
                return rows[name][-1]

            plain = train("without", f"batch={BATCH}")
            train("with", f"batch={BATCH}", "recompute=all")
            train("largest with", "batch=auto", "recompute=all", f"memory_limit={plain.peak}")
    print("ResNet-18, 32 pixels, Fashion-MNIST, the embedded sample; one thread; recompute=all against none\n")
    print(f"  {'':14} {'batch':>8} {'peak':>10} {'time':>9}   accuracy, seed by seed")
    for name, trained in rows.items():
        batches = sorted({each.batch for each in trained})
        print(f"  {name:14} {'-'.join(map(str, dict.fromkeys([batches[0], batches[-1]]))):>8} "
              f"{statistics.median(each.peak for each in trained) / 1e6:7.1f} MB {statistics.median(each.seconds for each in trained):7.1f} s   "
              f"mean {statistics.mean(each.accuracy for each in trained):4.1f} %: {' '.join(f'{each.accuracy:.1f}' for each in trained)}")
    if any(one.weights != other.weights for one, other in zip(rows["without"], rows["with"])):
        sys.exit("FAILED: recomputation has changed the weights")
    print("\nweights of the first two rows: equal to the bit")


if __name__ == "__main__":
    main()
