# SPDX-License-Identifier: Apache-2.0
"""Puts the pinned packages of tests/requirements.txt on the path, or skips the test with a message. Import it before
them."""
import pathlib
import subprocess
import sys

SKIPPED = 77  # ctest's, see cmake/house.cmake

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_cache  # noqa: E402

_tool = pathlib.Path(__file__).resolve().parents[2] / "tools" / "python_packages"
_found = subprocess.run([_tool], capture_output=True, text=True, env={**own_cache.OUTSIDE, "PYTHON": sys.executable})
if _found.returncode != 0:
    print(f"SKIPPED: the Python packages of tests/requirements.txt cannot be installed:\n{_found.stderr}")
    sys.exit(SKIPPED)
PACKAGES = _found.stdout.strip()
sys.path.insert(0, PACKAGES)
