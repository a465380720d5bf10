# SPDX-License-Identifier: Apache-2.0
"""torchrun with --nnodes=MIN:MAX: an agent that is killed leaves the run to the other one, and a new agent joins it; the
weights are those of one process that cuts its batch into as many microbatches."""
import json
import os
import pathlib
import signal
import socket
import sys
import time
import unittest

from packages import PACKAGES
from ranks_test import ENVIRONMENT, Ranks, TORCH

STEPS = 12000


class Elastic(Ranks):
    def setUp(self):
        if TORCH.returncode != 0:
            self.skipTest("PyTorch is not installed: no torchrun")
        super().setUp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        path = os.pathsep.join([PACKAGES, str(pathlib.Path(TORCH.stdout.strip()).parent)])
        self.environment = {**ENVIRONMENT, "PYTHONPATH": path}

    def agent(self, first):
        """One node, which this machine plays with others; the first one has the agents' store."""
        words = [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nnodes=1:2", "--nproc-per-node=1",
                 "--max-restarts=5", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self.port}", "--rdzv-id=elastic",
                 f"--rdzv-conf=is_host={'true' if first else 'false'},last_call_timeout=3,keep_alive_interval=1",
                 "--local-addr=127.0.0.1", "--monitor-interval=0.5"]
        return self.start([*words, *self.words("part", f"steps={STEPS}", "save_every=100", "eval_every=4000", "--quiet")],
                          self.environment)

    def starts(self):
        log = self.folder / "part/metrics.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines() if '"event":"run_started"' in line] if log.exists() else []
        return [each["first_step"] for each in events]

    def wait_for_start(self, number, agents):
        end = time.monotonic() + 120
        while len(self.starts()) < number:
            for each in agents:
                if each.poll() is not None:
                    self.fail(each.communicate()[1])
            self.assertLess(time.monotonic(), end, f"start {number} did not come")
            time.sleep(0.1)

    def ranks_now(self):
        return json.loads((self.folder / "part/plan.json").read_text())["plan"]["ranks"]["value"]

    def test_goes_on_with_the_agents_that_are_there(self):
        one = self.agent(True)
        time.sleep(1)
        two = self.agent(False)
        self.wait_for_start(1, [one, two])
        self.wait_for_steps("part", 300)
        self.assertEqual(self.ranks_now(), "2")
        for pid in (*self.others(two), two.pid):  # the node is gone
            os.kill(pid, signal.SIGKILL)
        self.wait_for_start(2, [one])
        self.wait_for_steps("part", max(300, self.starts()[1] + 300))
        self.assertEqual(self.ranks_now(), "1")
        three = self.agent(False)
        self.wait_for_start(3, [one, three])
        for each in (one, three):
            out, err = each.communicate(timeout=180)
            self.assertEqual(each.returncode, 0, out + err)
        self.assertEqual(self.ranks_now(), "2")
        begins = self.starts()
        self.assertEqual(len(begins), 3, begins)
        self.assertTrue(0 < begins[1] < begins[2] < STEPS, begins)
        schedule = f"1:32,{begins[1] + 1}:64,{begins[2] + 1}:32"
        self.run_words(self.words("alone", f"steps={STEPS}", "eval_every=4000", f"microbatch_schedule={schedule}"))
        self.assert_close("alone", "part")


if __name__ == "__main__":
    unittest.main()
