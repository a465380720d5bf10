#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two planted faults at once in a plain Python script: does `stoker doctor -- python ...` name the one first whose cure alone
gains more? Where both gain the same within 5 %, either is right.

    bench/doctor/pairs.py STOKER [--models mlp] [--repeats 3] [--steps N] [--only FAULT]

Speeds are those of the script without the doctor, with both faults and without one of them, in turns.
"""
import argparse
import itertools
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from scripts import environment  # it keeps freed memory

HERE = pathlib.Path(__file__).resolve().parent
RULES = {"anomaly": "debug_apis_on", "checkpoint": "checkpoint_stall", "gc": "gc_churn", "histograms": "tracker_cost",
         "numpy": "host_code", "optimizer": "optimizer_unfused", "samples": "input_wait", "threads": "oversubscribed_threads",
         "zero_grad": "zero_grad_not_none"}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--models", default="mlp")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print(f"{'faults':24} {'model':5} {'first':22} {'second':22} {'cure of the first':>18} {'of the second':>14}  right")
    right = both = wanted = 0
    with tempfile.TemporaryDirectory() as folder:
        own = environment(f"{folder}/out")

        def run(faults, model, prefix=(), steps=arguments.steps):
            done = subprocess.run([*prefix, "python3", HERE / "two_faults.py", ",".join(faults) or "none", model, str(steps)],
                                  capture_output=True, text=True, env=own, cwd=folder)
            if done.returncode != 0:
                raise RuntimeError(f"{faults} {model}: {done.stderr[-800:]}")
            return float(re.search(r"speed ([\d.]+)", done.stderr)[1])

        for model in arguments.models.split(","):
            for pair in itertools.combinations(sorted(RULES), 2):
                if arguments.only and arguments.only not in pair:
                    continue
                told = pathlib.Path(folder) / "told.json"
                run(pair, model, (arguments.stoker, "doctor", "--json", "--out", told, "--"), 60)
                named = [each["rule"] for each in json.loads(told.read_text())["findings"]]
                gains = {fault: [] for fault in pair}
                for _ in range(arguments.repeats):
                    whole = run(pair, model)
                    for fault in pair:
                        gains[fault].append(run([each for each in pair if each != fault], model) / whole)
                gain = {fault: statistics.median(gains[fault]) for fault in pair}
                most, least = sorted(pair, key=lambda fault: -gain[fault])
                same = gain[most] <= 1.05 * gain[least]
                first = named[0] if named else "nothing"
                good = first == RULES[most] or (same and first == RULES[least])
                wanted += 1
                right += good
                both += {RULES[each] for each in pair} <= set(named)
                by_rule = {RULES[fault]: f"{gain[fault]:.2f}" for fault in pair}
                second = named[1] if len(named) > 1 else "-"
                print(f"{', '.join(pair):24} {model:5} {first:22} {second:22} {by_rule.get(first, '-'):>18} {by_rule.get(second, '-'):>14}  "
                      f"{'yes' if good else f'NO: {most} gains {gain[most]:.2f}, {least} {gain[least]:.2f}'}", flush=True)
    print(f"\nright cause first: {right} of {wanted}; both named: {both} of {wanted}")


if __name__ == "__main__":
    sys.exit(main())
