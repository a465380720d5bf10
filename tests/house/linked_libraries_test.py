# SPDX-License-Identifier: Apache-2.0
"""The libraries of the command line: only torch's CPU part, so that it starts fast and runs without a GPU or Python;
libstoker_cuda loads the CUDA part at run time. Reads STOKER_BIN, the folder of the built program."""
import os
import pathlib
import re
import subprocess
import unittest

PROGRAM = pathlib.Path(os.environ["STOKER_BIN"]) / "stoker"


def dynamic_section():
    done = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True, check=True)
    return done.stdout


class LinkedLibraries(unittest.TestCase):
    def test_needs_no_cuda_and_no_python(self):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic_section())
        self.assertTrue(any(name.startswith("libc.so") for name in needed), needed)
        wrong = [name for name in needed if re.match(r"libtorch\.so|lib(torch|c10)_cuda|libcud|libpython|libtorch_python", name)]
        self.assertEqual(wrong, [])

    def test_finds_libraries_relative_to_itself(self):  # make bundle moves it
        paths = re.findall(r"\(RUNPATH\).*\[(.+)\]", dynamic_section())
        self.assertTrue(paths and "$ORIGIN/../lib" in paths[0].split(":"), paths)
        self.assertNotIn("", paths[0].split(":"), "an empty entry is the current folder")


if __name__ == "__main__":
    unittest.main()
