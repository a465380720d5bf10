# SPDX-License-Identifier: Apache-2.0
"""Puts the pinned packages of tests/requirements.txt on the path, or skips the test aloud. Import it before them."""
import os
import pathlib
import subprocess
import sys

SKIPPED = 77  # ctest's, see cmake/house.cmake

_tool = pathlib.Path(__file__).resolve().parents[2] / "tools" / "python_packages"
_found = subprocess.run([_tool], capture_output=True, text=True, env={**os.environ, "PYTHON": sys.executable})
if _found.returncode != 0:
    print(f"SKIPPED: the Python packages of tests/requirements.txt cannot be installed:\n{_found.stderr}")
    sys.exit(SKIPPED)
PACKAGES = _found.stdout.strip()
sys.path.insert(0, PACKAGES)
