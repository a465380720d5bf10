# SPDX-License-Identifier: Apache-2.0
"""tools/bundle_files/run-benches, with programs that only print their arguments and use the exit codes of the real
ones: without the device everything that needs it prints a skip message, and failed programs are named."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "bundle_files" / "run-benches"
# Without CUDA, the benchmarks exit with 77 and the command line with 71. FAKE_* describe the machine.
BENCH = """#!/bin/sh
echo "$(basename "$0") $*"
case "$*" in *device=cuda*) [ -n "$FAKE_GPU" ] || { echo "SKIPPED: no CUDA"; exit 77; } ;; esac
[ "$FAKE_FAILS" != "$(basename "$0")" ] || exit 3
"""
LOADER = """#!/bin/sh
echo "loader_bench $*"
case "$1" in mode=copies | mode=resident) [ -n "$FAKE_GPU" ] || echo '{"skipped": "no CUDA"}' ;; esac
"""
STARVED = """import os, sys
print("starved", *sys.argv[1:])
sys.exit(77 if "device=cuda" in sys.argv and not os.environ.get("FAKE_GPU") else 0)
"""
STOKER = """#!/bin/sh
case "$*" in *--help* | *--version*) exit 0 ;; esac
echo "stoker $*"
case "$*" in *"--device cuda"*) [ -n "$FAKE_GPU" ] && [ "$FAKE_FAILS" != stoker ] || exit 71 ;; esac
"""


class RunBenches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = pathlib.Path(folder.name)
        (self.bundle / "bin").mkdir()
        shutil.copy(SCRIPT, self.bundle / "run-benches")
        programs = {"launch": '#!/bin/sh\nexec "$@"\n', "stoker": STOKER, "bin/stoker": STOKER}
        programs |= {f"bin/{name}_bench": BENCH for name in ("step", "fused", "sinks")}
        programs |= {"bin/loader_bench": LOADER, "bench/data/starved.py": STARVED}
        for data in ("cifar10", "imagenet-sample"):
            (self.bundle / "data" / data).mkdir(parents=True)
        for name, text in programs.items():
            (self.bundle / name).parent.mkdir(parents=True, exist_ok=True)
            (self.bundle / name).write_text(text)
            (self.bundle / name).chmod(0o755)

    def run_benches(self, *words, **variables):
        """Exit code, the last line, and the output file of each benchmark."""
        environment = {key: value for key, value in os.environ.items() if key != "STOKER_DATA"} | variables
        done = subprocess.run([self.bundle / "run-benches", self.bundle / "results", *words], env=environment, capture_output=True,
                              text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()[-1], {
            file.stem: file.read_text() for file in (self.bundle / "results").glob("*.txt")}

    def test_without_the_device_everything_that_needs_it_is_skipped(self):
        code, said, left = self.run_benches()
        self.assertEqual(code, 0, said)
        need_none = {"step-operators", "sinks"}
        skipped = said.partition("no cuda, skipped:")[2].split()
        self.assertEqual(sorted(skipped), sorted(left.keys() - need_none))
        self.assertIn("tips", skipped)
        self.assertEqual(len(skipped), 22)
        for name in need_none:
            self.assertIn("exit code: 0", left[name])
        self.assertIn("step_bench operators device=cpu", left["step-operators"])

    def test_with_the_device_nothing_is_skipped(self):
        code, said, left = self.run_benches(FAKE_GPU="1")
        self.assertEqual((code, said), (0, f"run-benches: results in {self.bundle / 'results'}"))
        self.assertIn("step_bench operators device=cuda", left["step-operators"])
        self.assertIn("loader_bench mode=copies", left["copies"])
        self.assertIn(f"loader_bench mode=resident data={self.bundle}/data/cifar10 batch=8192", left["resident"])
        self.assertIn("device=cuda", left["starved"])

    def test_on_a_cpu_nothing_is_skipped(self):
        code, said, left = self.run_benches("cpu")
        self.assertEqual((code, said), (0, f"run-benches: results in {self.bundle / 'results'}"))
        self.assertIn("--device cpu", left["tips"])
        self.assertNotIn("copies", left)
        self.assertIn("loader_bench mode=twin", left["resident"])
        self.assertIn("device=cpu", left["starved"])
        shutil.rmtree(self.bundle / "data")
        shutil.rmtree(self.bundle / "results")
        _, _, left = self.run_benches("cpu")  # without data
        self.assertEqual(left.keys() & {"resident", "starved"}, set())

    def test_failures_are_named(self):
        code, said, _ = self.run_benches(FAKE_FAILS="sinks_bench")
        self.assertEqual(code, 1)
        self.assertTrue(said.endswith("FAILED: sinks"), said)
        code, said, _ = self.run_benches(FAKE_GPU="1", FAKE_FAILS="stoker")  # 71 although the device exists
        self.assertEqual(code, 1)
        self.assertTrue(said.endswith("FAILED: tips"), said)


if __name__ == "__main__":
    unittest.main()
