#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/test_cpus: its rows cover all pairs, the environment reaches the tests, and a failure in one row is named and
kept."""
import itertools
import pathlib
import runpy
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "test_cpus"
VALUES = {"ONEDNN_MAX_CPU_ISA": (None, "AVX512_CORE", "AVX2"), "ATEN_CPU_CAPABILITY": (None, "avx2", "default"),
          "OMP_NUM_THREADS": ("1", "2")}


class TestCpus(unittest.TestCase):
    def run_on(self, script, *names):
        """Runs the tool on a build folder with two tests; the numeric one is this shell script."""
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "CTestTestfile.cmake").write_text(
                f"add_test(ops sh -c [==[{script}]==])\nset_tests_properties(ops PROPERTIES LABELS numeric)\n"
                "add_test(other sh -c false)\n")
            return subprocess.run([TOOL, build, *names], text=True, stdout=subprocess.PIPE, check=False)

    def test_every_pair_of_values_occurs(self):
        rows = [environment for environment, _ in runpy.run_path(str(TOOL))["rows"]()]
        for (one, ones), (two, twos) in itertools.combinations(VALUES.items(), 2):
            for pair in itertools.product(ones, twos):
                self.assertTrue(any((row.get(one), row.get(two)) == pair for row in rows), f"{one}, {two}: {pair}")

    def test_all_rows_pass(self):
        done = self.run_on("exit 0")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count(": 1 tests passed"), 10)
        self.assertIn("all 10 rows passed", done.stdout)

    def test_a_failure_in_one_row_is_named(self):
        done = self.run_on("echo '[  FAILED  ] Step.Learns (3 ms)'; test \"$ONEDNN_MAX_CPU_ISA/$ATEN_CPU_CAPABILITY\" != AVX2/default")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("FAILED: ops, Step.Learns"), 1, done.stdout)
        self.assertIn("ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=default OMP_NUM_THREADS=1: FAILED", done.stdout)
        self.assertIn("1 of 10 rows failed", done.stdout)

    def test_no_tests_is_a_failure(self):
        self.assertEqual(self.run_on("exit 0", "none").returncode, 1)


if __name__ == "__main__":
    unittest.main()
