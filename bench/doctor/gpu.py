#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings on a GPU with a planted fault: does `stoker doctor -- python ...` name it first, and is the gain that it predicts
the gain of the cure? And does it keep silent of the trainings without a fault?

    bench/doctor/gpu.py STOKER [--only FAULT,...] [--repeats N] [--steps N] [--seconds LIMIT] [--keep FOLDER]

The cases are those of tests/doctor/gpu_case.py. Speeds are those of runs without the doctor, sick and cured in turns; with
--repeats 0 those of the last steps under the doctor. --keep writes the records of each case into the folder.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

CASE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "doctor" / "gpu_case.py"
# Fault and model: the rules that name it. Empty: nothing may be critical. Where the host is the limit, launch_bound is right
# of every training, the one without a fault as well, so there it does not count as an answer or as an alarm.
RIGHT = {
    ("none", "cnn"): (), ("none", "gpt"): (), ("none", "mlp"): (), ("none", "gpt-small"): (),
    ("fp32", "cnn"): ("no_tensor_core",), ("fp32", "gpt"): ("no_tensor_core",), ("no_amp", "cnn"): ("no_tensor_core",),
    ("no_amp", "gpt"): ("no_tensor_core",), ("nchw", "cnn"): ("layout",), ("pageable", "cnn"): ("pageable_h2d", "serial_h2d"),
    ("slow_samples", "cnn"): ("input_wait",), ("item", "cnn"): (), ("item", "gpt"): (), ("items", "gpt"): ("sync_point",),
    ("loop_optimizer", "gpt"): ("optimizer_unfused",), ("loop_optimizer", "mlp"): ("optimizer_unfused",),
    ("pageable", "mlp"): ("pageable_h2d", "serial_h2d"), ("print", "mlp"): (), ("empty_cache", "gpt"): ("alloc_churn",),
    ("launch_blocking", "gpt"): ("debug_apis_on",), ("plain_attention", "gpt"): ("attention_unfused",),
    ("ema", "gpt-small"): ("ema_loop",), ("anomaly", "gpt"): ("debug_apis_on",),
    ("loop_optimizer", "gpt-small"): ("optimizer_unfused",), ("no_benchmark", "cnn"): (), ("conv_bias", "cnn"): (),
    ("zero_grad", "gpt"): ("zero_grad_not_none",), ("mask_on_cpu", "gpt-small"): ("pageable_h2d",),
    ("clip_item", "gpt-small"): (), ("empty_cache", "gpt-small"): ("alloc_churn",), ("items", "gpt-small"): ("sync_point",),
    ("launch_blocking", "gpt-small"): ("debug_apis_on",), ("foreach_optimizer", "gpt-small"): ("optimizer_unfused",),
    ("blocking_copies", "cnn"): ("serial_h2d",), ("slow_samples_8", "cnn"): (), ("kept_history", "mlp"): ("kept_history",),
    ("predictions", "mlp"): ("sync_point",), ("synchronize", "gpt"): ("sync_point",), ("none", "cnn-small"): (),
    ("new_shapes", "cnn-small"): (),
}
EVERYWHERE = "launch_bound"


class Bench:
    def __init__(self, stoker, steps, keep):
        self.stoker, self.steps, self.keep = stoker, steps, keep
        # Cases start beside each other, and train one after the other.
        self.lock = os.path.join(tempfile.gettempdir(), f"gpu-case-{os.getpid()}")

    def run(self, fault, model, prefix=()):
        """Samples per second."""
        command = [*prefix, sys.executable, CASE, fault, model, str(self.steps)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "STOKER_CASE_LOCK": self.lock})
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-600:])
        return float(re.search(r"speed ([\d.]+)", done.stderr)[1])

    def diagnosis(self, fault, model):
        with tempfile.TemporaryDirectory() as folder:
            kept = [] if self.keep is None else ["--keep", f"{self.keep}/{fault}-{model}"]
            speed = self.run(fault, model, [self.stoker, "doctor", "--json", "--out", f"{folder}/told.json", *kept, "--"])
            return speed, json.loads(pathlib.Path(folder, "told.json").read_text())


def row(bench, fault, model, cured, repeats):
    speed, told = bench.diagnosis(fault, model)
    if fault == "none":  # these come first
        cured[model] = speed
    gains = [cured.get(model, math.nan) / speed]
    if repeats > 0 and fault != "none":
        gains = [bench.run("none", model) / bench.run(fault, model) for _ in range(repeats)]
    findings = [each for each in told["findings"] if each["rule"] != EVERYWHERE]
    first = findings[0] if findings else None
    right = RIGHT[fault, model]
    good = first is not None and first["rule"] in right if right else not any(each["critical"] for each in findings)
    gain = first and first["speedup"]
    said = f"{gain['likely']:.2f} ({gain['low']:.2f}-{gain['high']:.2f})" if gain else "-"
    rest = ", ".join(f"{each['rule']} {each['speedup']['likely']:.2f}" for each in told["findings"] if each is not first)
    return (f"{fault:17} {model:9} {first['rule'] if first else '-':19} {'yes' if good else 'NO':3} {said:>18} "
            f"{statistics.median(gains):6.2f} ({min(gains):.2f}-{max(gains):.2f}) {speed:9.0f}/s  {rest}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=110)
    parser.add_argument("--seconds", type=float, default=1e9, help="no case starts later")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    print(subprocess.run([arguments.stoker, "info", "machine"], capture_output=True, text=True).stdout.strip())
    bench, start = Bench(arguments.stoker, arguments.steps, arguments.keep), time.monotonic()
    cured = {}  # samples per second without a fault, by model
    print(f"{'fault':17} {'model':9} {'first finding':19} {'ok':3} {'predicted':>18} {'cured/sick (range)':>18} {'doctor on':>11}  "
          "also said", flush=True)
    cases = sorted((case for case in RIGHT if not arguments.only or case[0] in ("none", *arguments.only)), key=lambda case: case[0] != "none")

    def said(case):
        if time.monotonic() - start > arguments.seconds:
            return f"{case[0]:17} {case[1]:9} not run: the time is up"
        try:
            return row(bench, *case, cured, arguments.repeats)
        except (RuntimeError, OSError, ValueError, TypeError, subprocess.TimeoutExpired) as error:
            return f"{case[0]:17} {case[1]:9} FAILED: {error}"

    healthy = sum(case[0] == "none" for case in cases)
    for part in (cases[:healthy], cases[healthy:]):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:  # one computes, two start
            for text in pool.map(said, part):
                print(text, flush=True)


if __name__ == "__main__":
    main()
