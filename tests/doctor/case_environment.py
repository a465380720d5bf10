# SPDX-License-Identifier: Apache-2.0
"""The environment of a case of tests/doctor/cases."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Otherwise most networks of the cases have page faults besides their own fault (the rule page_faults).
KEEP_FREED_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_MMAP_MAX_": "0"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def environment(out, *requirements):
    """With Python's packages and torch on the path. out: the folder that the case may fill."""
    packages = [output(ROOT / "tools" / "python_packages", *each) for each in (*((file,) for file in requirements), ())]
    torch = pathlib.Path(output(ROOT / "tools" / "find_torch")).parent
    return {**os.environ, **KEEP_FREED_MEMORY, "PYTHONPATH": ":".join([*packages, str(torch)]), "CASE_OUT": str(out)}


def of_case(variables, case, variant):
    """The same for one case: that of page faults is cured by the environment."""
    frees = case == "page_faults" and variant != "cured"
    return {name: value for name, value in variables.items() if not frees or name not in KEEP_FREED_MEMORY}
