# SPDX-License-Identifier: Apache-2.0
"""torchrun with --nnodes=MIN:MAX: an agent that is killed leaves the run to the other one, and a new agent joins it; the
weights are those of one process that cuts its batch into as many microbatches. And the exit code of ranks whose store, in
a process of its own as that of an agent, is gone."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

from packages import PACKAGES
from ranks_test import ENVIRONMENT, Ranks, STOKER, TORCH

STEPS = 12000  # the first agent must not be done before the third one comes


class Elastic(Ranks):
    def setUp(self):
        if TORCH.returncode != 0:
            self.skipTest("PyTorch is not installed: no torchrun")
        super().setUp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        path = os.pathsep.join([PACKAGES, str(pathlib.Path(TORCH.stdout.strip()).parent)])
        # torch 2.11 gives the address of its shared store to the agents of the first start alone.
        self.environment = {**ENVIRONMENT, "PYTHONPATH": path, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

    def agent(self, first):
        """One node, which this machine plays with others; the first one has the agents' store."""
        words = [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nnodes=1:2", "--nproc-per-node=1",
                 "--max-restarts=5", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self.port}", "--rdzv-id=elastic",
                 f"--rdzv-conf=is_host={'true' if first else 'false'},last_call_timeout=3,keep_alive_interval=1",
                 "--local-addr=127.0.0.1", "--monitor-interval=0.5"]
        return self.start([*words, *self.words("part", f"steps={STEPS}", "save_every=100", "eval_every=4000", "--quiet")],
                          self.environment)

    def resumed_at(self):
        record = self.folder / "part/machine.json"
        return json.loads(record.read_text()).get("resumed_at", []) if record.exists() else []

    def wait_for_resumes(self, number, agents):
        end = time.monotonic() + 120
        while len(self.resumed_at()) < number:
            for each in agents:
                if each.poll() is not None:
                    self.fail(each.communicate()[1])
            self.assertLess(time.monotonic(), end, f"it did not go on for the {number}. time")
            time.sleep(0.1)

    def ranks_now(self):
        return json.loads((self.folder / "part/plan.json").read_text())["plan"]["ranks"]["value"]

    def test_goes_on_with_the_agents_that_are_there(self):
        one = self.agent(True)
        time.sleep(1)
        two = self.agent(False)
        self.wait_for_steps("part", 300)
        self.assertEqual(self.ranks_now(), "2")
        for pid in (*self.others(two), two.pid):  # the node is gone
            os.kill(pid, signal.SIGKILL)
        self.wait_for_resumes(1, [one])
        self.wait_for_steps("part", self.resumed_at()[0] + 300)
        self.assertEqual(self.ranks_now(), "1")
        three = self.agent(False)
        self.wait_for_resumes(2, [one, three])
        for each in (one, three):
            out, err = each.communicate(timeout=180)
            self.assertEqual(each.returncode, 0, out + err)
        self.assertEqual(self.ranks_now(), "2")
        first, second = self.resumed_at()
        self.assertTrue(0 < first < second < STEPS, (first, second))
        schedule = f"microbatch_schedule=1:32,{first + 1}:64,{second + 1}:32"
        self.run_words(self.words("alone", f"steps={STEPS}", "eval_every=4000", schedule))
        self.assert_close("alone", "part")


class StoreOfItsOwn(Ranks):
    SERVER = ("import time; from torch.distributed import TCPStore; "
              "store = TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False); "
              "print(store.port, flush=True); time.sleep(600)")

    def test_is_gone_so_all_save_and_stop(self):
        if TORCH.returncode != 0:
            self.skipTest("PyTorch is not installed")
        path = os.pathsep.join([PACKAGES, str(pathlib.Path(TORCH.stdout.strip()).parent)])
        server = subprocess.Popen([sys.executable, "-c", self.SERVER], env={**ENVIRONMENT, "PYTHONPATH": path}, text=True,
                                  stdout=subprocess.PIPE)
        self.addCleanup(lambda: (server.kill(), server.communicate()))
        port = server.stdout.readline().strip()
        words = self.words("part", "steps=100000", "--quiet")
        ranks = [self.start(words, {**ENVIRONMENT, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                                    "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                                    "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_USE_AGENT_STORE": "True"})
                 for rank in (0, 1)]
        self.wait_for_steps("part", 200)
        server.kill()
        for each in ranks:
            out, err = each.communicate(timeout=60)
            self.assertEqual(each.returncode, 75, out + err)
        self.run_words([STOKER, "resume", "part", f"steps={self.last_step() + 50}", "ranks=2", "--quiet"])

    def last_step(self):
        steps = [json.loads(line)["step"] for line in (self.folder / "part/metrics.jsonl").read_text().splitlines()
                 if '"event":"checkpoint"' in line]
        self.assertGreaterEqual(steps[-1], 200)
        return steps[-1]


if __name__ == "__main__":
    unittest.main()
