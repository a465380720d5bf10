#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Moves each threshold of the doctor's rules by a factor of two, up and down: some test must fail each time.

    tests/observe/doctor/move_thresholds.py BUILD [RULE...]

BUILD: a configured build folder, for example build/release. RULE: names of files in rules/, for example straggler; else all.

Changes the sources in place and puts them back, also after Ctrl-C. Ends with exit code 1 if a moved threshold goes unnoticed.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
RULES = ROOT / "src" / "stoker" / "observe" / "doctor" / "rules"
THRESHOLD = re.compile(r"constexpr double (k\w+) = ([\d.e-]+);")


def tests_pass(build):
    subprocess.run(["ninja", "-C", build, "observe_plain_tests"], stdout=subprocess.DEVNULL, check=True)
    return subprocess.run([pathlib.Path(build) / "tests" / "observe_plain_tests"], stdout=subprocess.DEVNULL).returncode == 0


def main():
    build, names, unnoticed, moved = sys.argv[1], sys.argv[2:], [], 0
    paths = [path for path in sorted(RULES.glob("*.*")) if not names or path.stem in names]
    if not tests_pass(build):
        sys.exit("the tests fail before anything was moved")
    for path in paths:
        text = path.read_text()
        try:
            for found in THRESHOLD.finditer(text):
                for factor in (2, 0.5):
                    path.write_text(f"{text[:found.start(2)]}{float(found[2]) * factor}{text[found.end(2):]}")
                    moved += 1
                    if tests_pass(build):
                        unnoticed.append(f"{path.name}: {found[1]} = {found[2]} times {factor}")
        finally:
            path.write_text(text)
    tests_pass(build)
    print(f"{moved} moved thresholds, {len(unnoticed)} unnoticed", *unnoticed, sep="\n")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
