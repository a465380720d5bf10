# SPDX-License-Identifier: Apache-2.0
"""Several processes train one run: those that `ranks=N` starts, and those of PyTorch's own torchrun. Compared with one
process that cuts its batch into as many microbatches; a rank that dies, a stop, ports, and wrong use."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from packages import PACKAGES
from own_cache import OUTSIDE
from safetensors.numpy import load_file

STOKER = str(pathlib.Path(os.environ["STOKER_BIN"], "stoker"))
FIND_TORCH = pathlib.Path(__file__).resolve().parents[2] / "tools" / "find_torch"
TORCH = subprocess.run([FIND_TORCH], capture_output=True, text=True, env=OUTSIDE)
OPTIONS = ("target=y", "batch=64", "precision=fp32", "intra_op=1", "threads=0", "ema=0", "monitor=off")
STARTER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in STARTER and not name.startswith("STOKER_RANK")}


class Ranks(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="stoker-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        numbers = random.Random(7)
        rows = [[numbers.gauss(0, 1) for _ in range(4)] for _ in range(3000)]
        lines = [",".join(f"{x:.6f}" for x in row) + f",{'a' if row[0] + row[1] * row[2] > 0 else 'b'}" for row in rows]
        (self.folder / "t.csv").write_text("p,q,r,s,y\n" + "\n".join(lines) + "\n")

    def words(self, run, *more):
        keys = [word.split("=")[0] for word in more]
        return [STOKER, "train", "t.csv", *(word for word in OPTIONS if word.split("=")[0] not in keys), f"run=./{run}", *more]

    def run_words(self, words, code=0, **options):
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=180,
                              **{"env": ENVIRONMENT, **options})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def start(self, words, env=ENVIRONMENT):
        child = subprocess.Popen(words, cwd=self.folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (child.kill(), child.communicate()))
        return child

    def weights(self, run):
        return load_file(self.folder / run / "checkpoints/last/weights.safetensors")

    def assert_close(self, one, other):
        ones, others = self.weights(one), self.weights(other)
        self.assertEqual(ones.keys(), others.keys())
        for name, value in ones.items():
            self.assertLess(abs(value - others[name]).max() / (abs(value).max() or 1), 1e-4, name)

    def last_bytes(self, run):
        return [(self.folder / run / "checkpoints/last" / name).read_bytes() for name in ("weights.safetensors", "state.safetensors")]

    def assert_same_bytes(self, one, other):
        self.assertTrue(one == other, "the checkpoints differ")  # assertEqual would compare line by line, for minutes

    def others(self, child):
        """The processes that it started."""
        return [int(pid) for pid in pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]

    def wait_for_steps(self, run, steps, rank=0):
        log = self.folder / run / ("" if rank == 0 else f"ranks/{rank}") / "metrics.jsonl"
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if log.exists() and log.read_text().count('"event":"step"') >= steps:
                return
            time.sleep(0.02)
        self.fail(f"{log}: no {steps} steps")


class Result(Ranks):
    def test_is_that_of_one_process_with_as_many_microbatches(self):
        for ranks in (2, 3):
            self.run_words(self.words(f"alone{ranks}", "steps=60", f"microbatch={-(-64 // ranks)}"))
            self.run_words(self.words(f"many{ranks}", "steps=60", f"ranks={ranks}"))
            self.assert_close(f"alone{ranks}", f"many{ranks}")

    def test_repeats_to_the_bit_also_under_torchrun(self):
        self.run_words(self.words("one", "steps=60", "ranks=2"))
        self.run_words(self.words("two", "steps=60", "ranks=2"))
        self.assert_same_bytes(self.last_bytes("one"), self.last_bytes("two"))
        if TORCH.returncode != 0:
            self.skipTest("PyTorch is not installed: no torchrun")
        path = os.pathsep.join([PACKAGES, str(pathlib.Path(TORCH.stdout.strip()).parent)])
        self.run_words([sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node=2", "--standalone",
                        *self.words("three", "steps=60")], env={**ENVIRONMENT, "PYTHONPATH": path})
        self.assert_same_bytes(self.last_bytes("one"), self.last_bytes("three"))
        plan = json.loads((self.folder / "three/plan.json").read_text())["plan"]["ranks"]
        self.assertEqual((plan["value"], plan["reason"]), ("2", "started by torchrun"))

    def test_goes_on_with_other_ranks(self):
        self.run_words(self.words("alone", "steps=60", "schedule_steps=60", "microbatch_schedule=1:32,21:64,41:22"))
        self.run_words(self.words("part", "steps=20", "schedule_steps=60", "ranks=2"))
        self.run_words([STOKER, "resume", "part", "steps=40", "ranks=1"])
        self.run_words([STOKER, "resume", "part", "steps=60", "ranks=3"])
        self.assertEqual(json.loads((self.folder / "part/plan.json").read_text())["plan"]["ranks"]["value"], "3")
        self.assert_close("alone", "part")

    def test_a_sharded_optimizer_gives_the_same_files(self):
        self.run_words(self.words("whole", "steps=60", "schedule_steps=60", "ranks=3"))
        self.run_words(self.words("part", "steps=30", "schedule_steps=60", "ranks=3", "shard=optimizer"))
        self.run_words([STOKER, "resume", "part", "steps=60"])
        self.assert_same_bytes(self.last_bytes("part"), self.last_bytes("whole"))
        for run in ("whole", "part"):
            self.run_words([STOKER, "resume", run, "steps=90", "ranks=2"])
        self.assert_same_bytes(self.last_bytes("part"), self.last_bytes("whole"))

    def test_a_pipeline_gives_the_same_files_with_any_stages(self):
        self.run_words(self.words("alone", "steps=60", "schedule_steps=60", "microbatch=8", "ema=0.9"))
        self.run_words(self.words("part", "steps=20", "schedule_steps=60", "ema=0.9", "pipeline=2"))
        for steps, more in (40, ("ranks=4",)), (50, ("pipeline=1", "ranks=1")), (60, ("pipeline=3", "ranks=3")):
            self.run_words([STOKER, "resume", "part", f"steps={steps}", *more])
        self.assert_close("alone", "part")
        plan = json.loads((self.folder / "part/plan.json").read_text())["plan"]["pipeline_cut"]
        self.assertEqual((plan["origin"], plan["value"].count(",")), ("measured", 1), plan)

    def test_a_pipeline_trains_a_model_that_fits_no_single_process(self):
        words = self.words("run", "steps=20", "memory_limit=2400KiB")
        self.assertIn("too small", self.run_words(words, code=2).stderr)
        self.run_words(words + ["pipeline=2"])

    def test_every_rank_keeps_its_log(self):
        self.run_words(self.words("run", "epochs=1", "ranks=2"))
        logs = [(self.folder / "run" / each / "metrics.jsonl").read_text() for each in ("", "ranks/1")]
        steps = [[line for line in log.splitlines() if '"event":"step"' in line] for log in logs]
        self.assertGreater(len(steps[0]), 0)
        self.assertEqual(len(steps[0]), len(steps[1]))
        self.assertIn("communication", logs[1])
        self.assertFalse((self.folder / "run/ranks/1/checkpoints").exists())


class Trouble(Ranks):
    def test_a_rank_that_is_killed_ends_all_and_the_run_goes_on(self):
        self.run_words(self.words("whole", "steps=1500", "save_every=50", "ranks=2"))
        child = self.start(self.words("part", "steps=1500", "save_every=50", "ranks=2", "--quiet"))
        self.wait_for_steps("part", 200)
        (other,) = self.others(child)
        os.kill(other, signal.SIGKILL)
        killed = time.monotonic()
        _, err = child.communicate(timeout=60)
        self.assertLess(time.monotonic() - killed, 30)
        self.assertEqual(child.returncode, 75, err)
        self.assertIn("lost", err)
        self.run_words([STOKER, "resume", "part", "--quiet"])
        self.assert_same_bytes(self.last_bytes("part"), self.last_bytes("whole"))

    def test_ranks_end_with_the_program_that_started_them(self):
        child = self.start(self.words("run", "steps=100000", "ranks=3", "--quiet"))
        self.wait_for_steps("run", 50)
        others = self.others(child)
        self.assertEqual(len(others), 2)
        child.kill()
        end = time.monotonic() + 30
        while any(self.lives(pid) for pid in others) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual([pid for pid in others if self.lives(pid)], [])

    def lives(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def test_a_stop_of_one_rank_stops_all_after_the_same_step(self):
        self.run_words(self.words("whole", "steps=1500", "ranks=2"))
        child = self.start(self.words("part", "steps=1500", "ranks=2", "--quiet"))
        self.wait_for_steps("part", 200)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 75, err)
        self.run_words([STOKER, "resume", "part", "--quiet"])
        self.assert_same_bytes(self.last_bytes("part"), self.last_bytes("whole"))

    def test_nothing_listens_beyond_loopback(self):
        child = self.start(self.words("run", "steps=100000", "ranks=2", "--quiet"))
        self.wait_for_steps("run", 50)
        heard = [address for pid in (child.pid, *self.others(child)) for address in listening(pid)]
        self.assertGreater(len(heard), 0)
        self.assertEqual([each for each in heard if not each.startswith("127.")], [])
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)

    def test_a_rank_that_hangs_is_named(self):
        self.run_words(self.words("whole", "steps=1500", "save_every=50", "ranks=2"))
        child = self.start(self.words("part", "steps=1500", "save_every=50", "ranks=2", "rank_timeout=2s", "--quiet"))
        self.wait_for_steps("part", 200)
        (other,) = self.others(child)
        os.kill(other, signal.SIGSTOP)
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 75, err)
        self.assertRegex(err, rf"rank 1 \(.*process {other}\) is stopped by a signal")
        record = (self.folder / "part/flight/rank-0.txt").read_text()
        self.assertRegex(record, r"failed +(sum|gathering) of \d+ bytes")
        self.run_words([STOKER, "resume", "part", "--quiet"])
        self.assert_same_bytes(self.last_bytes("part"), self.last_bytes("whole"))


def listening(pid):
    """Addresses on which a process listens, by /proc."""
    sockets = {os.readlink(each) for each in pathlib.Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()}
    found = []
    for name, family, size in (("tcp", socket.AF_INET, 4), ("tcp6", socket.AF_INET6, 16)):
        for line in pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                words = bytes.fromhex(local.split(":")[0])
                raw = b"".join(struct.pack(">I", *struct.unpack("<I", words[i:i + 4])) for i in range(0, size, 4))
                found.append(socket.inet_ntop(family, raw))
    return found


class Restarts(Ranks):
    """torchrun starts all ranks again when one of them fails."""
    LIVES = int(os.environ.get("STOKER_KILLS", "10"))

    def setUp(self):
        super().setUp()
        if TORCH.returncode != 0:
            self.skipTest("PyTorch is not installed: no torchrun")
        self.environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([PACKAGES, str(pathlib.Path(TORCH.stdout.strip()).parent)])}

    def torchrun(self, words, restarts=0):
        return [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node=2", "--standalone",
                f"--max-restarts={restarts}", *words]

    def ranks_of(self, agent):
        return [pid for pid in self.others(agent) if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(STOKER)]

    def test_end_in_the_same_bytes(self):
        for named in (True, False):
            lives = self.LIVES if named else -(-self.LIVES // 5)
            steps = f"steps={max(3000, 600 * lives)}"  # enough for the kills
            with self.subTest(named=named):
                self.run_words(self.words("whole", steps, "save_every=40", "ranks=2"))
                words = [word for word in self.words("part", steps, "save_every=40", "--quiet")
                         if named or not word.startswith("run=")]
                agent = self.start(self.torchrun(words, 3 * lives), self.environment)
                killed = self.kill_at_random(agent, lives)
                out, err = agent.communicate(timeout=300)
                self.assertEqual(agent.returncode, 0, out + err)
                print(f"{killed} kills", file=sys.stderr)
                self.assertGreater(killed, 0)
                runs = [path.parent for path in self.folder.rglob("plan.json") if path.parent.name != "whole"]
                self.assertEqual(len(runs), 1, "each start goes on with the run of the first one")
                self.assert_same_bytes(self.last_bytes(runs[0]), self.last_bytes("whole"))
                shutil.rmtree(self.folder / "whole")
                shutil.rmtree(runs[0])

    def kill_at_random(self, agent, most):
        """Kills ranks of the agent, until it ends, at most so many times."""
        numbers, killed = random.Random(11), 0
        while killed < most and agent.poll() is None:
            time.sleep(numbers.uniform(0, 3))
            try:
                ranks = self.ranks_of(agent)
                if ranks:
                    os.kill(numbers.choice(ranks), signal.SIGKILL)
                    killed += 1
            except OSError:  # it ended meanwhile
                pass
        return killed

    def test_a_stop_is_no_failure(self):
        agent = self.start(self.torchrun(self.words("part", "steps=100000", "--quiet"), 3), self.environment)
        self.wait_for_steps("part", 50)
        os.kill(self.ranks_of(agent)[1], signal.SIGTERM)
        out, err = agent.communicate(timeout=60)
        self.assertEqual(agent.returncode, 0, out + err)
        events = [json.loads(line) for line in (self.folder / "part/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([each["outcome"] for each in events if each["event"] == "run_finished"], ["stopped"])
        self.assertEqual(sum(each["event"] == "run_started" for each in events), 1)
        self.assertTrue((self.folder / "part/checkpoints/last").exists())

    def test_another_command_is_refused(self):
        first = {**ENVIRONMENT, "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
        self.run_words(self.words("run", "steps=20"), env=first)
        self.assertIn("batch=32", self.run_words(self.words("run", "steps=20", "batch=32"), env=first, code=2).stderr)
        self.run_words(self.words("run", "steps=30"), env=first)  # it may be longer
        events = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([each["step"] for each in events if each["event"] == "run_finished"][-1], 30)


class WrongUse(Ranks):
    def test_has_a_clear_error(self):
        self.assertIn("too small for 4 ranks", self.run_words(self.words("a", "ranks=4", "batch=2"), code=2).stderr)
        self.assertIn("remove it", self.run_words(self.words("a", "ranks=2", "apply=doctor"), code=2).stderr)
        self.assertIn("ranks", self.run_words(self.words("a", "ranks=0"), code=2).stderr)
        for words, reason in (("pipeline=2 ranks=3", "needs a rank for each stage"), ("pipeline=2 shard=optimizer", "remove it"),
                              ("pipeline=6", "set pipeline=5"), ("pipeline_cut=layer2", "needs a pipeline"),
                              ("pipeline=2 pipeline_cut=nope", "the segments are input, layer1")):
            self.assertIn(reason, self.run_words(self.words("a", *words.split()), code=2).stderr)
        half = {**ENVIRONMENT, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        self.assertIn("RANK is not set", self.run_words(self.words("a"), code=2, env=half).stderr)
        other = {**half, "RANK": "0", "WORLD_SIZE": "3"}
        self.assertIn("ranks=2, but", self.run_words(self.words("a", "ranks=2"), code=2, env=other).stderr)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            busy = {**half, "RANK": "0", "MASTER_PORT": str(taken.getsockname()[1])}
            self.assertIn("MASTER_PORT", self.run_words(self.words("a"), code=2, env=busy).stderr)

    def test_an_error_of_the_data_is_one_of_all(self):
        words = self.words("a", "ranks=2")
        words[2] = "missing.csv"
        done = self.run_words(words, code=65)
        self.assertIn("missing.csv", done.stderr)


if __name__ == "__main__":
    unittest.main()
