#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Planted faults in unmodified Python scripts, told by Stoker's doctor and by its peers, side by side.

    bench/doctor/peers.py STOKER [--model mlp] [--only CASE]

Peers: train-doctor (`profile`), traceml-ai (`run`). gpuprof needs changes in the script, and py-spy shows stacks and names
no cause: neither has a column. A peer is right if the first thing it says covers the planted cause, by a generous table
below; a false alarm is anything that it says of the healthy twin with a share or a gain of a tenth or more.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from scripts import CASES, LONG, RIGHT, ROOT, environment, of_case

# What covers the cause in train-doctor's words; a case that is not here has no rule there.
LOADER = {"dataloader_bound", "cpu_bound_preprocessing"}
TRAIN_DOCTOR = {
    "few_workers": LOADER, "slow_storage": LOADER, "list_collate": LOADER, "pandas_rows": LOADER, "many_tensors": LOADER,
    "epoch_restart": LOADER, "many_checkpoints": {"checkpoint_in_hot_loop"}, "histograms": {"logging_in_hot_loop"},
    "micro_reduce": {"ddp_accumulation_without_no_sync"},
}  # fmt: skip
# And in traceml's: its verdict is one of these, or that it has no data.
TRACEML = {case: {"INPUT-BOUND", "INPUT BOUND"} for case, ids in TRAIN_DOCTOR.items() if ids is LOADER}
LOUD = 0.1


class Tools:
    def __init__(self, stoker, model, folder):
        packages = subprocess.run([ROOT / "tools" / "python_packages", ROOT / "bench/doctor/requirements.txt"],
                                  capture_output=True, text=True, check=True).stdout.strip()
        self.stoker, self.model, self.folder = stoker, model, pathlib.Path(folder)
        self.environment = environment(f"{folder}/out", ROOT / "bench/doctor/requirements.txt")
        self.bin = pathlib.Path(packages) / "bin"
        for each in CASES.glob("*.py"):
            shutil.copy(each, self.folder)

    def run(self, case, variant, *command):
        """Output and seconds."""
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, env=of_case(self.environment, case, variant), cwd=self.folder, timeout=300)
        return done.stdout, time.monotonic() - start

    def script(self, case, variant):
        return [f"{case}.py", variant, self.model, str(LONG.get(case, 70))]

    def stoker_says(self, case, variant):
        told = self.folder / "told.json"
        told.unlink(missing_ok=True)
        _, seconds = self.run(case, variant, self.stoker, "doctor", "--json", "--out", told, "--", "python3", *self.script(case, variant))
        found = json.loads(told.read_text())["findings"]
        first = found[0]["rule"] if found else "-"
        loud = [each["rule"] for each in found if each["critical"]]
        return first, loud, seconds

    def train_doctor_says(self, case, variant):
        out, seconds = self.run(case, variant, "python3", self.bin / "train-doctor", "profile", "--json", "--", "python3", *self.script(case, variant))
        try:
            found = json.loads(out)["findings"]
        except (ValueError, KeyError):
            return "failed", [], seconds
        return (found[0]["id"] if found else "-"), [each["id"] for each in found if each["score"] >= LOUD], seconds

    def traceml_says(self, case, variant):
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        script, *words = self.script(case, variant)
        out, seconds = self.run(case, variant, "python3", self.bin / "traceml", "run", script, "--run-name", "it", "--args", *words)
        verdict = re.search(r"Verdict: *([^|\n]*?) *\|?\n", out)
        verdict = verdict[1].strip() if verdict else "failed"
        return verdict, [] if "INSUFFICIENT" in verdict or "failed" in verdict else [verdict], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for name in ("train-doctor", "traceml-ai"):
        wanted = re.search(rf"^{name}==(.*)$", (ROOT / "bench/doctor/requirements.txt").read_text(), re.M)[1]
        print(f"{name} {wanted}")
    scores = {name: {"first": 0, "false": 0, "judged": 0, "seconds": []} for name in ("stoker", "train-doctor", "traceml")}
    print(f"\n{'case':18} {'stoker':25} {'':3} {'train-doctor':26} {'':3} {'traceml':32} {'':3}  of the healthy twin: stoker | train-doctor | traceml")
    wanted = 0
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(arguments.stoker, arguments.model, folder)
        sides = {"stoker": (tools.stoker_says, {case: {rule} for case, rule in RIGHT.items()}),
                 "train-doctor": (tools.train_doctor_says, TRAIN_DOCTOR), "traceml": (tools.traceml_says, TRACEML)}
        for case in RIGHT:
            if arguments.only not in case:
                continue
            wanted += 1
            cells, alarms = [], []
            for name, (says, right) in sides.items():
                first, _, seconds = says(case, "sick")
                hit = first in right.get(case, ())
                silent = "INSUFFICIENT" in first  # it needs calls of its own in the script: it would be silent again
                _, loud, more = ("", [], seconds) if silent else says(case, "healthy")
                scores[name]["first"] += hit
                scores[name]["false"] += bool(loud)
                scores[name]["judged"] += not silent
                scores[name]["seconds"] += [seconds, more]
                cells.append(f"{first:{ {'stoker': 25, 'train-doctor': 26, 'traceml': 32}[name]}.32} {'yes' if hit else '-':3}")
                alarms.append(", ".join(loud) or "-")
            print(f"{case:18} {' '.join(cells)}  {' | '.join(alarms)}", flush=True)
    print()
    for name, score in scores.items():
        print(f"{name:13} right cause first {score['first']} of {wanted}; false alarms {score['false']} of {score['judged']} healthy twins; "
              f"a run takes {sorted(score['seconds'])[len(score['seconds']) // 2]:.1f} s (median)")
    print("A gain with an interval: stoker for each finding; train-doctor an upper bound for its loader rules; traceml none.")


if __name__ == "__main__":
    sys.exit(main())
