# SPDX-License-Identifier: Apache-2.0
"""`stoker ps` and `stoker top` as whole programs: beside a training that runs, in a pipe, and in a terminal of 80x24 that
becomes 100x30. Reads STOKER_BIN."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_cache  # noqa: F401

STOKER = os.environ["STOKER_BIN"] + "/stoker"


def stoker(*arguments, **more):
    return subprocess.run([STOKER, *arguments], capture_output=True, text=True, timeout=120, **more)


def write_table(path):
    lines = ["a,b,kind"] + [f"{i % 17},{i % 5},{'yes' if i % 17 > 8 else 'no'}" for i in range(2000)]
    path.write_text("\n".join(lines) + "\n")


class BesideATraining(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="stoker-look-")
        cls.root = pathlib.Path(cls.temporary.name).resolve()
        write_table(cls.root / "table.csv")
        cls.training = subprocess.Popen([STOKER, "train", "table.csv", "target=kind", "epochs=1000000", "run=a b", "threads=0", "intra_op=1"],
                                        cwd=cls.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.run_folder = cls.root / "runs" / "a b"
        log = cls.run_folder / "metrics.jsonl"
        for _ in range(600):
            if log.exists() and '"threads.main.cpu_cores"' in log.read_text():
                return
            time.sleep(0.1)
        cls.tearDownClass()
        raise RuntimeError("the training wrote no record of its threads in 60 s")

    @classmethod
    def tearDownClass(cls):
        cls.training.send_signal(signal.SIGINT)
        try:
            cls.training.wait(60)
        except subprocess.TimeoutExpired:
            cls.training.kill()
            cls.training.wait()
        cls.temporary.cleanup()

    def test_ps_finds_the_run(self):
        done = stoker("ps", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = json.loads(done.stdout)
        mine = [run for run in found["runs"] if run["pid"] == self.training.pid]
        self.assertEqual([run["run"] for run in mine], [str(self.run_folder)])
        self.assertIn("train table.csv", mine[0]["command"])
        self.assertGreater(mine[0]["resident_bytes"], 1 << 20)
        self.assertEqual("no_gpu" in found, not found["gpus"])
        text = stoker("ps").stdout
        self.assertIn(str(self.run_folder), text)
        self.assertIn("GPU", text)

    def test_ps_never_ends_a_process_without_a_gpu(self):
        done = stoker("ps", "--free", str(self.training.pid), input="yes\n")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("has no GPU device open", done.stderr)
        self.assertIsNone(self.training.poll())
        self.assertEqual(stoker("ps", "--free", "0").returncode, 2)
        self.assertEqual(stoker("ps", "--free", "12", "--json").returncode, 2)
        self.assertIn("there is no process", stoker("ps", "--free", str(1 << 22)).stderr)

    def test_ps_free_ends_a_holder_only_after_a_yes(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("needs root and a mount namespace of its own, for a file that stands in for a GPU's device")
        script = """mount -t tmpfs none /dev && : > /dev/nvidia0 || exit
                    sleep 600 <> /dev/nvidia0 1>&0 2>&0 & holder=$!; trap 'kill -9 $holder' EXIT
                    for i in $(seq 600); do [ "$(readlink /proc/$holder/fd/0)" = /dev/nvidia0 ] && break; sleep 0.1; done
                    for answer in no yes; do echo $answer | "$0" ps --free $holder; echo "code $?"; done"""
        done = subprocess.run(["unshare", "-m", "bash", "-c", script, STOKER],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(re.findall("code (.*)", done.stdout), ["130", "0"], done.stdout + done.stderr)
        self.assertIn("holds /dev/nvidia0", done.stdout)
        self.assertIn("nothing was done", done.stdout)
        self.assertIn("has ended", done.stdout)

    def test_top_prints_one_screen_into_a_pipe(self):
        for arguments in (("top", "--once"), ("top",), ("top", "--once", str(self.run_folder)), ("top", "--once", "runs/a b/")):
            done = stoker(*arguments, cwd=self.root)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout.count(f"run {self.run_folder}"), 1, done.stdout)
            self.assertIn("samples/s", done.stdout)
            self.assertIn("cores   main", done.stdout)
            self.assertNotIn("\x1b", done.stdout)
        done = stoker("top", "nowhere")
        self.assertEqual(done.returncode, 65)
        self.assertIn("nowhere: is not a run folder", done.stderr)

    def test_top_in_a_terminal(self):
        child, terminal = pty.fork()
        if child == 0:
            os.execve(STOKER, [STOKER, "top"], {**os.environ, "TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"})
        size = lambda rows, columns: fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        size(24, 80)
        shown = b""

        def wait_for(words, seconds=60):
            nonlocal shown
            end = time.monotonic() + seconds
            while words not in shown and time.monotonic() < end:
                if select.select([terminal], [], [], 0.2)[0]:
                    shown += os.read(terminal, 65536)
            self.assertIn(words, shown)

        wait_for(b"stoker top")
        wait_for(b"a b")
        shown = b""
        size(30, 100)
        os.kill(child, signal.SIGWINCH)
        wait_for(b"command")  # drawn anew
        begin = time.monotonic()
        for _ in range(100):  # keys draw anew, and look no sooner
            os.write(terminal, b"x")
            time.sleep(0.02)
            while select.select([terminal], [], [], 0)[0]:
                os.read(terminal, 65536)
        shown = b""
        size(31, 100)
        os.kill(child, signal.SIGWINCH)
        wait_for(b"command")
        looks = re.search(rb"cores .*? for us *((?:\xe2\x96.)+)", shown).group(1)
        self.assertLess(len(looks) // 3, 20 + time.monotonic() - begin)
        os.write(terminal, b"q")
        wait_for(b"\x1b[?1049l")  # the screen is given back
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        os.close(terminal)


if __name__ == "__main__":
    unittest.main()
