# SPDX-License-Identifier: Apache-2.0
"""The installed library: `cmake --install` into a prefix that is then moved. The command line runs from there, and a
user's program (tests/consumer) is configured, built and run with it. Its weights are compared with the same descent in
plain Python. Reads STOKER_BUILD, the build folder."""
import csv
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["STOKER_BUILD"])


def cached(name):
    """A variable of the build's CMake."""
    found = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def descent():
    """Weights, bias and last loss of 25 steps of gradient descent with momentum on tests/consumer/main.cpp's points."""
    points = []
    for i in range(12):
        a, b = 0.25 * (i % 4), 0.5 * (i // 4)
        points.append(((a, b), 3 * a - 2 * b + (0.5 if i % 2 == 0 else 0.25)))
    values, moments, loss = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 0.0
    for _ in range(25):
        misses = [(a, b, values[0] * a + values[1] * b + values[2] - y) for (a, b), y in points]
        loss = sum(miss * miss for _, _, miss in misses) / len(points)
        for k, factor in enumerate((lambda a, b: a, lambda a, b: b, lambda a, b: 1.0)):
            gradient = sum(2 * miss * factor(a, b) for a, b, miss in misses) / len(points)
            moments[k] = 0.9 * moments[k] + gradient
        values = [value - 0.05 * moment for value, moment in zip(values, moments)]
    return [*values, loss]


class Consumer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temporary.name)
        cls.run_tool("cmake", "--install", BUILD, "--prefix", folder / "first")
        (folder / "first").rename(folder / "moved")
        cls.prefix, cls.build = folder / "moved", folder / "build"

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def run_tool(cls, *command, fails=False, cwd=None, **environment):
        done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False, cwd=cwd,
                              env={**os.environ, **environment})
        if (done.returncode != 0) != fails:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done.stderr if fails else done.stdout

    def configure(self, build, source=ROOT / "tests" / "consumer", **more):
        flags = f"-DCMAKE_CXX_FLAGS=-fsanitize={cached('STOKER_SANITIZE')}" if cached("STOKER_SANITIZE") else ""
        return self.run_tool("cmake", "-S", source, "-B", build, "-G", "Ninja",
                             f"-DCMAKE_CXX_COMPILER={cached('CMAKE_CXX_COMPILER')}", f"-DCMAKE_PREFIX_PATH={self.prefix}", *([flags] if flags else []), **more)

    def test_the_command_line_runs_from_the_prefix(self):
        said = self.run_tool(self.prefix / "bin" / "stoker", "--version")
        self.assertTrue(said.startswith(f"stoker {cached('CMAKE_PROJECT_VERSION')}, torch "), said)

    def test_a_program_builds_and_trains(self):
        self.configure(self.build)
        self.run_tool("ninja", "-C", self.build)
        kinds = re.findall(r"^(\w+) ", self.run_tool(self.prefix / "bin" / "stoker", "info", "tasks"), re.MULTILINE)
        self.assertGreaterEqual(len(kinds), 2)
        programs = [self.build / "consumer"]
        if (self.prefix / "lib" / "libstoker_cuda.so").exists():
            programs.append(self.build / "consumer_cuda")
            needed = self.run_tool("readelf", "-d", programs[-1])
            self.assertIn("libstoker_cuda.so", needed)
        for program in programs:
            figures, *names = self.run_tool(program).splitlines()
            for mine, true in zip(map(float, figures.split()), descent(), strict=True):
                self.assertAlmostEqual(mine, true, delta=2e-6)
            self.assertEqual(names, kinds)
        place = pathlib.Path(self.temporary.name)
        with tarfile.open(ROOT / "examples" / "data" / "fashion-mnist-6000.tar") as sample:
            sample.extractall(place / "photos", [each for each in sample if re.search(r"/\d*[05]0\.png$", each.name)])
        self.run_tool(programs[0], "photos", cwd=place, STOKER_CACHE=str(place / "cache"))  # the code in docs/api.md
        run, = (place / "runs").iterdir()
        with open(run / "metrics.csv", newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        self.assertEqual({row["epoch"] for row in rows if row["kind"] == "step"}, {"0", "1", "2", "3", "4"})

    def test_a_wrong_torch_is_refused_with_a_message(self):
        folder = pathlib.Path(self.temporary.name) / "old"
        folder.mkdir()
        (folder / "version.py").write_text("__version__ = '2.1.0+cpu'\n", encoding="utf-8")
        self.configure(folder / "build")  # the environment overrides the torch that this one found
        said = " ".join(self.configure(folder / "build", fails=True, STOKER_TORCH=str(folder)).split())
        self.assertIn(f"STOKER_TORCH={folder} is torch 2.1.0, torch 2.11.0 is needed", said)
        self.configure(folder / "build")
        project = folder / "perhaps"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(perhaps LANGUAGES CXX)\nfind_package(stoker 0.2)\n"
            'message(STATUS "without it: ${stoker_FOUND}: ${stoker_NOT_FOUND_MESSAGE}")\n', encoding="utf-8")
        said = self.configure(folder / "without", source=project, STOKER_TORCH=str(folder))
        self.assertIn(f"without it: 0: STOKER_TORCH={folder} is torch 2.1.0", said)


if __name__ == "__main__":
    unittest.main()
