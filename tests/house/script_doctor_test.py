# SPDX-License-Identifier: Apache-2.0
"""`stoker doctor -- COMMAND` on real Python scripts with PyTorch: it finds the cause, and the script notices nothing: the
same output, result and exit code, whatever the script does. Ugly ways to start, to end and to have children."""
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

from packages import PACKAGES, SKIPPED
from own_cache import OUTSIDE

ROOT = pathlib.Path(__file__).resolve().parents[2]
STOKER = os.environ["STOKER_BIN"] + "/stoker"
_torch = subprocess.run([ROOT / "tools" / "find_torch"], capture_output=True, text=True, env=OUTSIDE)
if _torch.returncode != 0:
    print("SKIPPED: Python has no torch of the pinned version")
    sys.exit(SKIPPED)
TORCH = _torch.stdout.strip()
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{PACKAGES}:{pathlib.Path(TORCH).parent}", "OMP_NUM_THREADS": "1"}
ENVIRONMENT.pop("STOKER_DOCTOR_RECORDS", None)

# A training that says everything that a watcher could have changed. What a test adds runs after the training.
TRAINING = """
    import hashlib, os, random, signal, sys, time
    import numpy, torch
    from torch import nn

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return 64
        def __getitem__(self, index):
            slow = time.perf_counter() + float(os.environ.get("SLOW", 0))
            while time.perf_counter() < slow:
                pass
            return torch.randn(8) + random.random() + numpy.random.rand(), index % 2

    def train(steps, workers=0, **options):
        torch.manual_seed(1); random.seed(1); numpy.random.seed(1)
        model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.1), nn.Linear(16, 2))
        optimizer = torch.optim.Adam(model.parameters())
        loader = torch.utils.data.DataLoader(Pictures(), batch_size=16, shuffle=True, num_workers=workers, **options)
        done = 0
        while done < steps:
            model.train()
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs.float()), targets)
                loss.backward()
                optimizer.step()
                done += 1
            model.eval()
            with torch.no_grad():
                model(torch.zeros(4, 8))
        digest = hashlib.sha256()
        for tensor in [*model.state_dict().values(), torch.get_rng_state(), torch.tensor(numpy.random.get_state()[1].astype("int64"))]:
            digest.update(tensor.numpy().tobytes())
        print(digest.hexdigest(), random.random(), len(sys.path), sys.getswitchinterval(), flush=True)
"""


class Watched(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text, name="train.py", training=True):
        script = (textwrap.dedent(TRAINING) if training else "") + textwrap.dedent(text)
        (self.folder / name).write_text(script)
        return name

    def run_plain(self, *command, **options):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120,
                              **{"env": ENVIRONMENT, **options})

    def watch(self, *command, flags=("--json", "--out", "found.json"), **options):
        """The finished process, and what was found."""
        done = self.run_plain(STOKER, "doctor", *flags, "--", *command, **options)
        path = self.folder / "found.json"
        return done, json.loads(path.read_text()) if path.exists() and path.stat().st_size > 0 else None

    def rules(self, found):
        return [each["rule"] for each in found["findings"]]


class Result(Watched):
    def test_is_the_same_to_the_bit(self):
        for workers in (0, 2):
            script = self.write(f"train(40, {workers})")
            plain = self.run_plain("python3", script)
            self.assertEqual(plain.returncode, 0, plain.stderr)
            watched, found = self.watch("python3", script)
            self.assertEqual((watched.returncode, watched.stdout, watched.stderr), (0, plain.stdout, plain.stderr))
            self.assertEqual(found["source"], "script")
            self.assertEqual(found["damage"], [])
            self.assertGreaterEqual(found["steps"], 20)

    def test_slow_samples_are_named_with_their_line(self):
        self.write("train(60)")
        _, found = self.watch("python3", "train.py", env={**ENVIRONMENT, "SLOW": "0.002"})
        claims = {each["rule"]: each["claim"] for each in found["findings"]}
        self.assertIn("__getitem__ (train.py:", claims["input_wait"])  # the first, unless other programs take the cores

    def test_a_whole_model_can_be_saved_in_evaluation(self):
        script = self.write("""
            train(20)
            import pickle
            optimizer = torch.optim.Adam(model.parameters()) if (model := nn.Linear(2, 2)) else None
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            model.eval()
            print(len(pickle.dumps((model, optimizer, torch.utils.data.DataLoader([1, 2])))) > 100)
        """)
        watched, _ = self.watch("python3", script)
        self.assertEqual((watched.returncode, watched.stdout.splitlines()[-1]), (0, "True"), watched.stderr)

    def test_a_training_in_another_thread_is_found(self):
        script = self.write("""
            import threading
            thread = threading.Thread(target=train, args=(40,))
            thread.start(); thread.join()
        """)
        watched, found = self.watch("python3", script)
        self.assertEqual(watched.returncode, 0, watched.stderr)
        self.assertGreater(found["steps"], 20)

    def test_a_second_optimizer_goes_on_where_the_first_one_ended(self):
        script = self.write("train(40); import gc; gc.collect(); train(40)")
        self.watch("python3", script, flags=["--keep", "kept"])
        steps = [json.loads(line) for path in pathlib.Path(self.folder, "kept").glob("*.jsonl")
                 for line in path.read_text().splitlines() if '"kind": "period"' in line or '"kind":"period"' in line]
        self.assertEqual(max(each["last_step"] for each in steps), 80)

    def test_standard_streams_are_the_scripts_own(self):
        script = self.write("print(sys.stdin.read() + '!'); print('to error', file=sys.stderr); train(20)")
        watched, _ = self.watch("python3", script, flags=(), input="from input")
        self.assertIn("from input!", watched.stdout)
        self.assertNotIn("stoker", watched.stdout)
        self.assertIn("to error\n", watched.stderr)
        self.assertIn("stoker doctor: ", watched.stderr)

    def test_records_can_be_kept_and_read_again(self):
        script = self.write("train(60)")
        watched, found = self.watch("python3", script, flags=("--json", "--out", "found.json", "--keep", "records"))
        self.assertEqual(watched.returncode, 0, watched.stderr)
        again = self.run_plain(STOKER, "doctor", "records", "--json")
        self.assertEqual(json.loads(again.stdout)["findings"], found["findings"])
        refused, _ = self.watch("python3", script, flags=("--keep", "records"))
        self.assertEqual(refused.returncode, 2)
        self.assertIn("records: exists", refused.stderr)

    def test_leaves_nothing_behind(self):
        script = self.write("train(20)")
        scratch = self.folder / "scratch"
        scratch.mkdir()
        self.watch("python3", script, env={**ENVIRONMENT, "TMPDIR": str(scratch)})
        self.assertEqual(list(scratch.glob("stoker*")), [])


class Ending(Watched):
    def test_exit_codes_are_the_scripts(self):
        for text, code in (("train(20); sys.exit(3)", 3), ("train(20); os._exit(4)", 4),
                           ("train(20); os.kill(os.getpid(), signal.SIGKILL)", 137)):
            with self.subTest(text):
                watched, found = self.watch("python3", self.write(text))
                self.assertEqual(watched.returncode, code)
                self.assertEqual(found["source"], "script")

    def test_a_failure_is_said_with_its_traceback(self):
        script = self.write("train(20); raise ValueError('no more')")
        watched, _ = self.watch("python3", script, flags=())
        self.assertEqual(watched.returncode, 1)
        self.assertIn("ValueError: no more", watched.stderr)
        self.assertIn("The script ended with code 1.", watched.stderr)

    def started(self, text):
        """A watched script that has printed a line after its training."""
        script = self.write(text)
        process = subprocess.Popen([STOKER, "doctor", "--out", "found.txt", "--", "python3", script], cwd=self.folder,
                                   env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, start_new_session=True)
        process.stdout.readline()
        time.sleep(0.5)  # a signal that comes while Python enters sleep() is handled after it, in any program with threads
        return process

    def test_signals_reach_the_script(self):
        process = self.started("""
            def end(number, frame):
                print("asked to end", flush=True); sys.exit(9)
            signal.signal(signal.SIGTERM, end)
            train(20)
            time.sleep(60)
        """)
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.wait(30), process.stdout.read()), (9, "asked to end\n"))
        process.stdout.close()
        self.assertIn("code 9", (self.folder / "found.txt").read_text())

    def test_ctrl_c_ends_the_script_once(self):
        process = self.started("""
            try:
                train(20)
                time.sleep(60)
            except KeyboardInterrupt:
                time.sleep(0.5)  # a second interrupt would show here
                sys.exit(7)
        """)
        os.killpg(process.pid, signal.SIGINT)  # as a process manager does: all of the group
        self.assertEqual(process.wait(30), 7)
        process.stdout.close()

    def test_keys_of_a_terminal_reach_the_script_once(self):
        script = self.write("""
            train(20)
            try:
                print("ready", sys.stdin.readline(), flush=True)
                time.sleep(60)
            except KeyboardInterrupt:
                time.sleep(0.5)
                sys.exit(7)
        """)
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvpe(STOKER, [STOKER, "doctor", "--", "python3", script], ENVIRONMENT)
        seen = self.read_until(terminal, b"python3" * 99, seconds=6)  # Ctrl-Z while it trains or waits for a line
        os.write(terminal, b"\x1a")
        stopped, status = os.waitpid(child, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status), (status, seen))
        os.kill(child, signal.SIGCONT)
        os.write(terminal, b"a line\n")
        seen = self.read_until(terminal, b"ready a line")
        time.sleep(0.5)  # until it sleeps, see started()
        os.write(terminal, b"\x03")
        seen = self.read_until(terminal, b"code 7")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7, seen)
        os.close(terminal)

    def read_until(self, terminal, words, seconds=30):
        seen, end = b"", time.monotonic() + seconds
        while words not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 4096)
                except OSError:
                    break
        return seen

    def hanging_script(self):
        """The script, and the line at which it stands."""
        script = self.write("""
            import threading
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters())
            for step in range(20):
                model(torch.ones(1, 8)).sum().backward()
                optimizer.step()
            threading.Event().wait()  # for nobody
        """)
        return script, (self.folder / script).read_text().splitlines().index("threading.Event().wait()  # for nobody") + 1

    def test_a_script_that_hangs_is_told_with_its_line(self):
        script, line = self.hanging_script()
        process = subprocess.Popen([STOKER, "doctor", "--", "python3", script], cwd=self.folder, stderr=subprocess.PIPE, text=True,
                                   stdout=subprocess.DEVNULL, env={**ENVIRONMENT, "STOKER_DOCTOR_STILL": "1"})
        end = threading.Timer(60, process.kill)
        end.start()
        told = next((each for each in process.stderr if "no step for" in each), "")
        end.cancel()
        self.assertIn(f"the training is at {script}:{line} (threading.Event().wait()", told)
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        self.assertIn("note: no step for", rest)

    def test_a_script_that_hangs_is_told_in_the_file_of_verdicts(self):
        script, line = self.hanging_script()
        out = self.folder / "verdict.txt"
        process = subprocess.Popen([STOKER, "doctor", "--out", out, "--", "python3", script], cwd=self.folder, stderr=subprocess.PIPE,
                                   text=True, stdout=subprocess.DEVNULL, env={**ENVIRONMENT, "STOKER_DOCTOR_STILL": "1"})
        end, told = time.monotonic() + 60, ""
        while "no step for" not in told and time.monotonic() < end:
            time.sleep(0.1)
            told = out.read_text() if out.exists() else ""
        process.send_signal(signal.SIGTERM)
        self.assertIn(f"the training is at {script}:{line} (threading.Event().wait()", told)
        _, rest = process.communicate(timeout=60)
        self.assertEqual(rest, "")
        self.assertIn("note: no step for", out.read_text())

    def test_a_script_that_another_process_outlives_ends(self):
        script = self.write("""
            train(20)
            if os.fork() == 0:
                os.setsid()
                os.close(0); os.close(1); os.close(2)
                time.sleep(3)
                os._exit(0)
        """)
        start = time.monotonic()
        watched, found = self.watch("python3", script)
        self.assertEqual(watched.returncode, 0)
        self.assertGreater(found["steps"], 10)
        self.assertLess(time.monotonic() - start, 60)


class Starting(Watched):
    def test_without_the_shim_it_is_said(self):
        script = self.write("print('ran')", training=False)
        for command in (["python3", "-I", script], ["python3", "-S", script], ["python3", "-E", script],
                        ["env", "-i", sys.executable, script], ["true"]):
            with self.subTest(command):
                watched, found = self.watch(*command)
                self.assertEqual(watched.returncode, 0, watched.stderr)
                self.assertIn("Python did not load", found["verdict"])

    def test_a_script_without_torch_or_steps_is_said(self):
        _, found = self.watch("python3", self.write("print('ran')", training=False))
        self.assertIn("did not import torch", found["verdict"])
        _, found = self.watch("python3", self.write("print('ran')"))
        self.assertIn("no optimizer made a step", found["verdict"])

    def test_commands_that_cannot_start_are_refused(self):
        for command, words in ((["nothing-of-that-name"], "cannot be started"), ([], "no command follows")):
            done = self.run_plain(STOKER, "doctor", "--", *command)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)
        done = self.run_plain(STOKER, "doctor", "PATH", "--", "true")
        self.assertIn("not both", done.stderr)

    def test_the_own_sitecustomize_runs(self):
        (self.folder / "own").mkdir()
        (self.folder / "own" / "sitecustomize.py").write_text("import builtins; builtins.own_word = 'mine'\n")
        script = self.write("import sitecustomize; print(own_word, sitecustomize.__file__, sys.path); train(20)")
        environment = {**ENVIRONMENT, "PYTHONPATH": f"{self.folder}/own:{ENVIRONMENT['PYTHONPATH']}"}
        plain = self.run_plain("python3", script, env=environment)
        watched, found = self.watch("python3", script, env=environment)
        self.assertEqual((watched.stdout, watched.returncode), (plain.stdout, 0))
        self.assertGreater(found["steps"], 10)

    def test_a_module_a_shell_and_a_second_interpreter_are_found(self):
        (self.folder / "package").mkdir()
        self.write("train(20)", "package/train.py")
        (self.folder / "package" / "__init__.py").touch()
        self.write("import os, sys; os.execv(sys.executable, [sys.executable, '-m', 'package.train'])", "start.py", False)
        for command in (["python3", "-m", "package.train"], ["sh", "-c", "cd . && python3 package/train.py"],
                        ["python3", "start.py"]):
            with self.subTest(command):
                watched, found = self.watch(*command)
                self.assertEqual(watched.returncode, 0, watched.stderr)
                self.assertGreater(found["steps"], 10)
                self.assertIn("train", found["job"])


class Processes(Watched):
    def test_workers_that_spawn_are_seen(self):
        script = self.write("if __name__ == '__main__':\n    train(40, 1, multiprocessing_context='spawn')")
        watched, found = self.watch("python3", script)
        self.assertEqual(watched.returncode, 0, watched.stderr)
        self.assertEqual(found["figures"]["loader.workers"]["value"], 1)
        self.assertIn("epoch_restart", self.rules(found))  # an interpreter and torch for each epoch of four steps

    def test_ranks_that_a_script_or_torchrun_starts(self):
        script = self.write("""
            def rank(number):
                train(20)
            if __name__ == "__main__":
                torch.multiprocessing.start_processes(rank, nprocs=2, start_method=sys.argv[1])
        """)
        for method in ("fork", "spawn"):
            with self.subTest(method):
                watched, found = self.watch("python3", script, method)
                self.assertEqual(watched.returncode, 0, watched.stderr)
                self.assertGreater(found["steps"], 10)
        script = self.write("""
            torch.distributed.init_process_group("gloo")
            train(20)
            torch.distributed.destroy_process_group()
        """)
        watched, found = self.watch("python3", "-m", "torch.distributed.run", "--nproc-per-node", "2", script)
        self.assertEqual(watched.returncode, 0, watched.stderr)
        self.assertGreater(found["steps"], 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
