#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A derived task forwards every virtual function of Task to its base, also those with a default in Task, which the
compiler does not report."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2] / "src/stoker/tasks"


def main():
    header = (ROOT / "task.h").read_text(encoding="utf-8")
    task = header[header.index("class Task {"):]
    names = re.findall(r"virtual [^;{]*?(\w+)\(", task[:task.index("\n};")])
    names = [name for name in names if name != "Task"]
    source = (ROOT / "derived_task.cpp").read_text(encoding="utf-8")
    missing = [name for name in names if f"base_->{name}(" not in source]
    assert len(names) >= 18, f"found only {names}"
    assert not missing, f"DerivedTask does not forward {', '.join(missing)}: add it to src/stoker/tasks/derived_task.cpp"
    return 0


if __name__ == "__main__":
    sys.exit(main())
