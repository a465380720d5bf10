# SPDX-License-Identifier: Apache-2.0
"""`stoker bench ranks` as a command: what it prints and writes, under torchrun too; a stop; a rank that is lost; wrong
use. What it measured is nobody's promise here."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from packages import PACKAGES
from ranks_test import ENVIRONMENT, STOKER, TORCH


class RanksBench(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="stoker-test-")
        self.addCleanup(temporary.cleanup)
        self.file = pathlib.Path(temporary.name, "ranks.json")

    def words(self, *more):
        return [STOKER, "bench", "ranks", "--model", "mlp", "--json", str(self.file), *more]

    def run_words(self, words, code=0, **options):
        done = subprocess.run(words, capture_output=True, text=True, timeout=180, **{"env": ENVIRONMENT, **options})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def result(self):
        return json.loads(self.file.read_text())

    def check(self, measured):
        told = self.result()
        self.assertEqual([each["ranks"] for each in told["measured"]], measured)
        self.assertEqual([each["ranks"] for each in told["forecast"]], [8, 16, 32, 64, 128, 256, 512, 1024])
        self.assertEqual(told["measured"][0]["sums"], [])
        for each in told["measured"][1:]:
            self.assertEqual((each["sums"][0]["bytes"], each["sums"][-1]["bytes"]), (8, 16 * 2 ** 20))
            self.assertTrue(all(sum_["seconds"] > 0 for sum_ in each["sums"]))
        self.assertGreater(told["link"]["latency_seconds"], 0)
        return told

    def test_measures_ranks_and_forecasts_more(self):
        done = self.run_words(self.words("--ranks", "4", "--seconds", "0.01"))
        self.check([1, 2, 4])
        self.assertIn("a model and no measurement", done.stdout)
        self.assertEqual(done.stdout.count("samples/s"), 2)  # one process prints

    def test_forecasts_for_another_network(self):
        self.run_words(self.words("--ranks", "2", "--seconds", "0.01", "--latency", "50", "--bandwidth", "1000"))
        told = self.check([1, 2])
        self.assertAlmostEqual(told["forecast_link"]["latency_seconds"], 50e-6)
        self.assertEqual(told["forecast_link"]["bytes_per_second"], 1e9)

    def test_measures_the_ranks_of_torchrun(self):
        if TORCH.returncode != 0:
            self.skipTest("PyTorch is not installed: no torchrun")
        path = os.pathsep.join([PACKAGES, str(pathlib.Path(TORCH.stdout.strip()).parent)])
        done = self.run_words([sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node=3", "--standalone",
                               *self.words("--seconds", "0.01")], env={**ENVIRONMENT, "PYTHONPATH": path})
        self.check([1, 3])
        self.assertEqual(done.stdout.count("samples/s"), 2)

    def start_long(self):
        """Once ranks measure together."""
        child = subprocess.Popen(self.words("--ranks", "2", "--seconds", "2"), env=ENVIRONMENT, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(lambda: (child.kill(), child.communicate()))
        for line in child.stderr:
            if "2 ranks: sums of 64 bytes" in line:
                return child
        self.fail("the ranks never measured")

    def test_a_stop_keeps_what_is_measured(self):
        child = self.start_long()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 75, err)
        self.assertIn("Stopped early.", out)
        self.assertTrue(self.result()["stopped"])
        self.assertEqual([each["ranks"] for each in self.result()["measured"]], [1])

    def test_a_rank_that_is_killed_is_an_error(self):
        child = self.start_long()
        (other,) = map(int, pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split())
        os.kill(other, signal.SIGKILL)
        killed = time.monotonic()
        _, err = child.communicate(timeout=60)
        self.assertLess(time.monotonic() - killed, 30)
        self.assertEqual(child.returncode, 75, err)
        self.assertIn("lost", err)
        self.assertFalse(self.file.exists())

    def test_wrong_use_has_a_clear_error(self):
        self.assertIn("mlp", self.run_words([STOKER, "bench", "ranks", "--model", "mpl"], code=2).stderr)
        self.assertIn("--ranks", self.run_words(self.words("--ranks", "1"), code=2).stderr)
        self.assertIn("--seconds", self.run_words(self.words("--seconds", "0"), code=2).stderr)
        self.assertIn("--device", self.run_words(self.words("--device", "tpu"), code=2).stderr)
        missing = self.run_words([STOKER, "bench", "ranks", "--json", str(self.file.parent / "none" / "a.json")], code=74)
        self.assertIn("none", missing.stderr)
        alone = {**ENVIRONMENT, "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
        self.assertIn("at least two", self.run_words(self.words(), code=2, env=alone).stderr)


if __name__ == "__main__":
    unittest.main()
