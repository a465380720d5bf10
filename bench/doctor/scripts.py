#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plain Python scripts with a planted fault: does `stoker doctor -- python ...` name it first, and is the gain that it
predicts the gain of the cure? And does it keep silent of the cured and the healthy twin?

    bench/doctor/scripts.py STOKER [--models mlp,cnn,gpt] [--repeats N] [--steps N] [--only CASE]

The cases are tests/doctor/cases/; what is right for each is in tests/observe/doctor/script_cases_test.cpp. Speeds are those
of the scripts without the doctor, sick and cured in turns.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "doctor" / "cases"
sys.path.insert(0, str(CASES.parent))
from case_environment import environment, of_case  # noqa: E402

RIGHT = dict(re.findall(r'^    \{"(\w+)", "(\w+)",', (ROOT / "tests/observe/doctor/script_cases_test.cpp").read_text(), re.M))
# Faults that make the result wrong or the memory full: no speed is predicted.
DANGERS = {"fp16_no_scaler", "gc_off", "host_leak", "kept_history", "kept_outputs", "ranks_drift", "same_batch", "scaler_collapse", "unread_result"}
WORTH_SAYING = 1.02  # a fault whose cure gains less needs no word
LONG = {"host_leak": 150}  # steps under the doctor: its workers copy pages for some seconds before it shows


class Bench:
    def __init__(self, stoker, steps, folder):
        self.stoker, self.steps, self.folder = stoker, steps, folder
        self.environment = environment(f"{folder}/out")

    def run(self, case, variant, model, prefix=()):
        steps = LONG.get(case, 60) if prefix else self.steps
        done = subprocess.run([*prefix, "python3", CASES / f"{case}.py", variant, model, str(steps)], capture_output=True, text=True,
                              env=of_case(self.environment, case, variant), cwd=self.folder)
        if done.returncode != 0:
            raise RuntimeError(f"{case} {variant} {model}: {done.stderr[-800:]}")
        return float(re.search(r"speed ([\d.]+)", done.stderr)[1])

    def diagnosis(self, case, variant, model):
        told = f"{self.folder}/told.json"
        self.run(case, variant, model, [self.stoker, "doctor", "--json", "--out", told, "--"])
        return json.loads(pathlib.Path(told).read_text())

    def gains(self, case, model, repeats):
        """Speed of the cured one as a multiple of the sick one's, in each turn."""
        ratios = []
        for turn in range(repeats):
            sides = ("sick", "cured") if turn % 2 == 0 else ("cured", "sick")
            speed = {side: self.run(case, side, model) for side in sides}
            ratios.append(speed["cured"] / speed["sick"])
        return ratios


def alarms(told):
    """What is said of a training that has no fault."""
    return [f"{each['rule']} {each['speedup']['likely']:.2f}" + ("!" if each["critical"] else "") for each in told["findings"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--models", default="mlp,cnn,gpt")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30, help="of a run whose speed is measured, after the first ten")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    print(f"{'case':19} {'model':5} {'first finding':22} {'right':>5} {'predicted':>20} {'measured, median (range)':>24} {'error':>7} {'inside':>6}  said of the cured | of the healthy")
    errors, inside, widths, right, wanted, critical = [], [], [], 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.stoker, arguments.steps, folder)
        for model in arguments.models.split(","):
            for case, rule in RIGHT.items():
                if arguments.only and arguments.only not in case:
                    continue
                told = bench.diagnosis(case, "sick", model)
                found = (told["findings"] + told["below_threshold"] + [None])[0]
                others = [alarms(bench.diagnosis(case, variant, model)) for variant in ("cured", "healthy")]
                critical += sum(each.endswith("!") for some in others for each in some)
                wanted += 1
                named = found["rule"] if found else "nothing"
                said = " | ".join(", ".join(each) or "-" for each in others)
                ratios = [] if case in DANGERS else bench.gains(case, model, arguments.repeats)
                middle = statistics.median(ratios or [0])
                good = named == rule or (found is None and case not in DANGERS and middle < WORTH_SAYING)
                right += good
                line = f"{case:19} {model:5} {named:22} {'yes' if good else 'NO':>5}"
                if case in DANGERS or found is None:
                    measured = f"{middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else "-"
                    print(f"{line} {'-':>20} {measured:>24} {'-':>7} {'-':>6}  {said}", flush=True)
                    continue
                gain = found["speedup"]
                errors.append(abs(gain["likely"] / middle - 1))
                inside.append(gain["low"] <= middle <= gain["high"])
                widths.append((gain["high"] - gain["low"]) / gain["likely"])
                predicted = f"{gain['likely']:.2f} ({gain['low']:.2f}-{gain['high']:.2f})"
                measured = f"{middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
                print(f"{line} {predicted:>20} {measured:>24} {100 * errors[-1]:6.1f}% {'yes' if inside[-1] else 'no':>6}  {said}", flush=True)
    errors.sort()
    print(f"\nright cause first: {right} of {wanted}; critical findings on cured and healthy ones: {critical}")
    if errors:
        print(f"error of the prediction: median {100 * statistics.median(errors):.1f} %, 90th percentile "
              f"{100 * errors[int(0.9 * (len(errors) - 1))]:.1f} %; measured inside the interval: {sum(inside)} of {len(inside)}; "
              f"width of the interval: median {100 * statistics.median(widths):.0f} %")


if __name__ == "__main__":
    main()
