#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts in the styles that people write, each with one fault at a time, unmodified under `stoker doctor`: is the cause
named first, and is the result the same to the bit as without the doctor?

    bench/doctor/styles.py STOKER [--only STYLE]

The scripts are tests/doctor/styles/. Lightning and transformers come from bench/doctor/requirements.txt.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STYLES = ROOT / "tests" / "doctor" / "styles"
sys.path.insert(0, str(STYLES.parent))
from case_environment import environment  # noqa: E402

RULES = dict(re.findall(r'^    "(\w+)": "(\w+)",', (STYLES / "faults.py").read_text(), re.M))
# Where a fault cannot be planted: Lightning and Trainer hand the loss over without its graph.
IMPOSSIBLE = {("lightning_module", "kept_losses"), ("hf_trainer", "kept_losses"), ("hf_trainer", "dropped_to"),
              ("lightning_module", "dropped_to")}


def last_line(done):
    """The digest of all that was trained: transformers prints its run time before."""
    return done.stdout.splitlines()[-1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    right = wanted = equal = runs = alarms = healthy = 0
    with tempfile.TemporaryDirectory() as folder:
        variables = {**environment(folder, ROOT / "bench/doctor/requirements.txt"), "HF_HUB_OFFLINE": "1"}

        def run(style, fault, *prefix):
            return subprocess.run([*prefix, "python3", STYLES / f"{style}.py", fault], capture_output=True, text=True, cwd=folder, env=variables)

        for path in sorted(STYLES.glob("*.py")):
            style = path.stem
            if style == "faults" or arguments.only not in style:
                continue
            for fault in ("none", *RULES):
                if (style, fault) in IMPOSSIBLE:
                    continue
                plain = run(style, fault)
                told = pathlib.Path(folder) / "told.json"
                watched = run(style, fault, arguments.stoker, "doctor", "--json", "--out", told, "--")
                same = plain.returncode == watched.returncode == 0 and last_line(plain) == last_line(watched)
                runs, equal = runs + 1, equal + same
                findings = json.loads(told.read_text())["findings"]
                named = findings[0]["rule"] if findings else "nothing"
                said = f"{findings[0]['claim'][:110]}" if findings else ""
                if fault == "none":
                    healthy, alarms = healthy + 1, alarms + sum(each["critical"] for each in findings)
                    verdict = "healthy" if not findings else "speaks"
                else:
                    wanted, right = wanted + 1, right + (named == RULES[fault])
                    verdict = "right" if named == RULES[fault] else "WRONG"
                print(f"{style:17} {fault:13} {verdict:7} {named:18} result {'equal' if same else 'DIFFERS'} (code {plain.returncode})  {said}", flush=True)
                if plain.returncode != 0:
                    print(plain.stderr[-600:])
    print(f"\nright cause first: {right} of {wanted}; result and exit code equal: {equal} of {runs}; critical findings on {healthy} healthy ones: {alarms}")


if __name__ == "__main__":
    main()
