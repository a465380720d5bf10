# SPDX-License-Identifier: Apache-2.0
"""What real ranks show of themselves: times in the log, the table and the report; the slowest one by name; who runs
where; who is missing."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import unittest

from ranks_test import ENVIRONMENT, Ranks, STOKER

HOST = socket.gethostname()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Times(Ranks):
    def records(self, run):
        lines = (self.folder / run / "metrics.jsonl").read_text().splitlines()
        return [record for record in map(json.loads, lines) if record["event"] == "ranks"]

    def test_log_table_and_report_have_a_row_per_rank(self):
        done = self.run_words(self.words("run", "steps=300", "ranks=2"))
        *periods, whole = self.records("run")
        self.assertTrue(whole["whole"])
        self.assertEqual(whole["steps"], 300)  # between the messages; one more was needed to agree on the passes
        self.assertEqual([row["host"] for row in whole["ranks"]], [HOST, HOST])
        for key in ("steps", "seconds", "exposed"):
            self.assertAlmostEqual(sum(period[key] for period in periods), whole[key], delta=1e-6)
        for row in whole["ranks"]:  # each moment is once in a row, but for what a rank computes while it waits
            parts = row["data"] + row["saving"] + row["computed"] + row["waited"]
            self.assertAlmostEqual((parts + whole["exposed"]) / whole["seconds"], 1, delta=0.1)
        self.assertEqual([bucket["steps"] for bucket in whole["buckets"]], [300])
        self.assertIn("2 ranks: 300 steps; ", done.stdout)
        for rank in (0, 1):
            self.assertRegex(done.stdout, rf"\n  rank {rank} on {HOST} +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+\n")
        self.assertFalse((self.folder / "run/ranks/1/metrics.jsonl").read_text().count('"event":"ranks"'))
        page = (self.folder / "run/report.html").read_text()
        found = json.JSONDecoder().raw_decode(page[page.index('"ranks":{"steps"') + len('"ranks":'):])[0]
        self.assertEqual([row[:2] for row in found["ranks"]], [[0, HOST], [1, HOST]])
        self.assertEqual(found["steps"], 300)

    def test_buckets_have_a_bandwidth(self):
        for hidden, most in ((512, 10), (16, 1)):
            self.run_words(self.words(f"run{hidden}", "steps=50", "ranks=2", f"hidden={hidden}"))
            buckets = self.records(f"run{hidden}")[-1]["buckets"]
            self.assertLessEqual(len(buckets), most)
            self.assertEqual({bucket["steps"] for bucket in buckets if bucket["bytes"] > 200_000}, {50} if hidden == 512 else set())
        self.assertEqual([bucket["steps"] for bucket in buckets], [0])  # it rides in the message

    def test_a_rank_whose_core_is_taken_is_named(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("there is one core")
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "LOCAL_WORLD_SIZE": "2"}
        burner = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, {cores[1]}))
        self.addCleanup(lambda: (burner.kill(), burner.wait()))
        ranks = []
        for rank in (0, 1):
            def on_its_core(rank=rank):
                os.sched_setaffinity(0, {cores[rank]})
                os.nice(10 * rank)
            words = self.words("run", "time=12s", "batch=512", "hidden=1024", "save_every=100000", "eval_every=100000")
            ranks.append(subprocess.Popen(words, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=on_its_core,
                                          env={**ENVIRONMENT, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)}))
            self.addCleanup(lambda child=ranks[-1]: (child.kill(), child.communicate()))
        out = ranks[0].communicate(timeout=120)[0]
        self.assertEqual((ranks[0].returncode, ranks[1].wait(timeout=60)), (0, 0), out)
        self.assertRegex(out, rf"rank 1 on {HOST} is slowest: its thread waits for a core [0-9.,]+ ms a step, others [0-9.]+ ms; others wait ")
        self.assertIn("  slowest rank 1, host", out)  # in the progress line


class Plan(Ranks):
    def test_shows_who_runs_where(self):
        done = self.run_words([STOKER, "plan", "t.csv", "target=y", "ranks=2"])
        table = done.stdout.split("who runs where:\n")[1].splitlines()
        self.assertEqual(table[0].split()[:3], ["rank", "node", "device"])
        self.assertEqual([line.split()[:3] for line in table[1:]], [[str(rank), HOST, "cpu"] for rank in (0, 1)])
        cores = sorted(os.sched_getaffinity(0))
        for line in table[1:]:
            self.assertIn(f" {cores[0]}", line)
            self.assertIn("1 core" if len(cores) < 4 else "cores", line)
        self.assertEqual(list(self.folder.glob("runs")), [])
        alone = self.run_words([STOKER, "plan", "t.csv", "target=y"])
        self.assertNotIn("who runs where", alone.stdout)

    def test_all_gpus_of_a_machine_without_one(self):
        done = self.run_words([STOKER, "train", "t.csv", "target=y", "device=cuda:all"], code=2,
                              env={**ENVIRONMENT, "CUDA_VISIBLE_DEVICES": ""})
        self.assertIn("device=cuda:all, but no GPU can be used here", done.stderr)


class Missing(Ranks):
    def line_of(self, child, seconds=60):
        """The first line that it says on standard error."""
        lines = []
        reader = threading.Thread(target=lambda: lines.append(child.stderr.readline()), daemon=True)
        reader.start()
        reader.join(seconds)
        self.assertTrue(lines, "nothing was said")
        return lines[0]

    def test_who_does_not_come_is_named(self):
        place = {"WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        began = time.monotonic()
        first, third = (self.start(self.words("run"), env={**ENVIRONMENT, **place, "RANK": rank}) for rank in "02")
        self.assertEqual(self.line_of(first), "stoker: waiting for ranks 1, 3 of 4\n")
        self.assertGreater(time.monotonic() - began, 9)
        lost = self.start(self.words("run"), env={**ENVIRONMENT, **place, "RANK": "1", "MASTER_PORT": "1"})
        self.assertIn("waiting for the store of the ranks at 127.0.0.1:1", self.line_of(lost))
        third.kill()
        self.assertEqual(third.communicate()[1], "")  # one of the two speaks


if __name__ == "__main__":
    unittest.main()
