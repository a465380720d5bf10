#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A derived task passes every call on to its base, including calls with a default, which no compiler reports as
missing."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2] / "src/stoker/tasks"
WRAPPERS = {"TaskData": "Wrapped", "ReadyTask": "DerivedTask", "OpenData": "DerivedData", "TaskKind": "DerivedKind"}


def body(text, name):
    """The class's text."""
    text = text[text.index(f"class {name} "):]
    return text[:text.index("\n};")]


def main():
    header = (ROOT / "task.h").read_text(encoding="utf-8")
    source = (ROOT / "derived_task.cpp").read_text(encoding="utf-8")
    found = 0
    for base, wrapper in WRAPPERS.items():
        names = [name for name in re.findall(r"virtual [^;{]*?(\w+)\(", body(header, base)) if name != base]
        missing = [name for name in names if not re.search(rf"base_(->|\.|\)\.){name}\(", body(source, wrapper))]
        if wrapper == "DerivedKind" and "recognises" in missing:
            missing.remove("recognises")  # data is never recognised as a derived kind
        assert not missing, f"{wrapper} does not pass on {', '.join(missing)}: add it to src/stoker/tasks/derived_task.cpp"
        found += len(names)
    assert found >= 25, f"found only {found} calls"
    return 0


if __name__ == "__main__":
    sys.exit(main())
