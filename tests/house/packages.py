# SPDX-License-Identifier: Apache-2.0
"""Puts the pinned packages of tests/requirements.txt on the path, or skips the test with a message. Import it before
them."""
import pathlib
import subprocess
import sys

SKIPPED = 77  # ctest's, see cmake/house.cmake

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "support"))
import own_cache  # noqa: E402


def installed(name):
    """The folder with the packages of a list in tests/."""
    found = subprocess.run([TESTS.parent / "tools" / "python_packages", TESTS / name], capture_output=True, text=True,
                           env={**own_cache.OUTSIDE, "PYTHON": sys.executable})
    if found.returncode != 0:
        print(f"SKIPPED: the Python packages of tests/{name} cannot be installed:\n{found.stderr}")
        sys.exit(SKIPPED)
    return found.stdout.strip()


PACKAGES = installed("requirements.txt")
sys.path.insert(0, PACKAGES)
