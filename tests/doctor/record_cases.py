#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases under the doctor and keeps their records, which tests/observe/doctor/script_cases_test.cpp reads.

    tests/doctor/record_cases.py BUILD [CASE...]       BUILD: a configured build folder, for example build/release

Run it on a quiet machine after a change of the shim or of a case. Takes 8 minutes. Paths of this machine are taken out.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from case_environment import environment, of_case

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VARIANTS = ("sick", "cured", "healthy")
STEPS = {"host_leak": 150}  # workers copy pages for some seconds before it shows


def plain(value):
    """Without paths of this machine."""
    if isinstance(value, str):
        return value.replace(str(HERE / "cases") + "/", "").replace(sys.prefix, "/usr")
    if isinstance(value, list):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def record(build, case, variant, folder):
    with tempfile.TemporaryDirectory() as out:
        kept = pathlib.Path(out) / "records"
        done = subprocess.run([f"{build}/apps/stoker/stoker", "doctor", "--out", f"{out}/found.txt", "--keep", kept, "--", "python3",
                               f"{case}.py", variant, "mlp", str(STEPS.get(case, 60))], cwd=HERE / "cases", env=of_case(environment(out), case, variant),
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{case} {variant}: {done.stderr}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number, path in enumerate(sorted(kept.glob("*.jsonl"))):
            lines = [plain(json.loads(line)) for line in path.read_text().splitlines()]
            if path.name == "monitor.jsonl" or any("stages" in line or "parts" in line for line in lines):
                name = path.name if path.name == "monitor.jsonl" else f"{number + 1}.jsonl"
                text = "".join(json.dumps(short(line), separators=(",", ":")) + "\n" for line in lines)
                (folder / name).write_text(text)
        print(f"{case} {variant}: {(pathlib.Path(out) / 'found.txt').read_text().splitlines()[0]}", flush=True)


def short(value):
    """Six digits are enough. Times of the machine's clock keep theirs."""
    if isinstance(value, float):
        return value if value > 1000 else float(f"{value:.6g}")
    if isinstance(value, list):
        return [short(each) for each in value]
    return {key: short(each) for key, each in value.items()} if isinstance(value, dict) else value


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    cases = sys.argv[2:] or sorted(path.stem for path in (HERE / "cases").glob("*.py") if path.stem != "parts")
    for case in cases:
        for variant in VARIANTS:
            record(build, case, variant, HERE / "records" / case / variant)


if __name__ == "__main__":
    main()
