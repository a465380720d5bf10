# SPDX-License-Identifier: Apache-2.0
"""build_times adds up the latest build of each unit and fails over its budget."""
import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "build_times"
LOG = """# ninja log v5
0\t5000\t1\ta/CMakeFiles/x.dir/slow.cpp.o\t1f
0\t2000\t1\ta/CMakeFiles/x.dir/quick.cpp.o\t2f
0\t9000\t1\ta/libx.a\t3f
5000\t8000\t2\ta/CMakeFiles/x.dir/slow.cpp.o\t1f
"""


class BuildTimes(unittest.TestCase):
    def run_tool(self, log, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            if log is not None:
                (pathlib.Path(folder) / ".ninja_log").write_text(log, encoding="utf-8")
            return subprocess.run([TOOL, folder, *arguments], capture_output=True, text=True, check=False)

    def test_sum_of_the_latest_builds_slowest_first(self):
        done = self.run_tool(LOG)
        self.assertEqual(done.returncode, 0)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0].split(), ["3.0", "s", "a/x.dir/slow.cpp"])
        self.assertIn("5.0 s  in 2 units, within", lines[-1])

    def test_fails_over_the_budget_and_without_a_log(self):
        self.assertEqual(self.run_tool(LOG, "--budget", "4.9").returncode, 1)
        self.assertEqual(self.run_tool(LOG, "--budget", "5").returncode, 0)
        self.assertNotEqual(self.run_tool(None).returncode, 0)
        self.assertNotEqual(self.run_tool("nonsense").returncode, 0)


if __name__ == "__main__":
    unittest.main()
