# SPDX-License-Identifier: Apache-2.0
"""What `stoker doctor -- COMMAND` records of a few steps: with PyTorch's profiler, which here runs on a CPU, and line by
line. The script notices nothing of it. And the hook that replaces cProfile from CPython 3.12 on."""
import cProfile
import collections
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest

from script_doctor_test import ENVIRONMENT, ROOT, STOKER

sys.path.insert(0, str(ROOT / "src" / "stoker" / "observe" / "script" / "shim"))
from stoker_shim import calls, ledger, record, waits  # noqa: E402

# Prints all that the burst could have changed.
TRAINING = """
    import contextlib, hashlib, os, sys, torch
    def seen():
        return torch.Tensor.item, torch.Tensor.to, torch.cuda.synchronize, torch.overrides._get_current_function_mode_stack()
    own = seen()
    def train(count, after_step=lambda: None):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 2))
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(count):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.zeros(8, dtype=torch.long))
            loss.backward()
            if loss.item() < 0 or loss.to(torch.float64).isnan():
                print("wrong")
            optimizer.step()
            after_step()
        weights = torch.cat([each.detach().flatten() for each in model.parameters()])
        print(hashlib.sha256(weights.numpy().tobytes()).hexdigest())
        print(torch.rand(1).item(), own == seen())
"""


def run(text, prefix=(), **environment):
    return subprocess.run([*prefix, sys.executable, "-c", textwrap.dedent(TRAINING) + textwrap.dedent(text)], capture_output=True,
                          text=True, env={**ENVIRONMENT, **environment}, timeout=120)


class Recorded(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.kept = pathlib.Path(folder.name) / "kept"
        self.doctor = [STOKER, "doctor", "--out", f"{folder.name}/told.txt", "--keep", str(self.kept), "--"]

    def records(self):
        lines = [json.loads(line) for path in self.kept.glob("[0-9]*.jsonl") for line in path.read_text().splitlines()]
        self.assertEqual([each for each in lines if each["kind"] == "trouble"], [])
        return lines

    def test_leaves_the_script_as_it_is(self):
        plain, watched = run("train(60)"), run("train(60)", self.doctor, STOKER_DOCTOR_BURST="cpu")
        self.assertEqual((watched.returncode, watched.stdout), (0, plain.stdout))
        self.assertIn("True", plain.stdout)
        self.assertNotIn("wrong", plain.stdout)

    def test_holds_five_steps_that_no_period_counts(self):
        run("train(60)", self.doctor, STOKER_DOCTOR_BURST="cpu")
        lines = self.records()
        recorded = [each for each in lines if each["kind"] == "burst"]
        self.assertEqual([each["steps"] for each in recorded], [5])
        trace = json.loads((self.kept / recorded[0]["trace"]).read_text())["traceEvents"]
        marks = [each["name"] for each in trace if each.get("name", "").startswith("ProfilerStep#")]
        self.assertEqual(sorted(marks), [f"ProfilerStep#{step}" for step in range(26, 31)])
        self.assertGreater(sum(each.get("name") == "aten::addmm" for each in trace), 9)
        said = subprocess.run([STOKER, "trace", self.kept / recorded[0]["trace"]], capture_output=True, text=True)
        self.assertIn("5 steps", said.stdout)
        waits = [each for each in lines if each["kind"] == "waits"]
        self.assertEqual([(each["steps"], each["rows"]) for each in waits], [(3, [])])  # nothing is on a GPU
        periods = [each for each in lines if each["kind"] == "period"]
        counted = {step for each in periods for step in range(each["last_step"] - each["steps"] + 1, each["last_step"] + 1)}
        self.assertEqual(sorted(set(range(2, 61)) - counted), list(range(25, 34)))

    def test_ends_with_a_script_that_ends_meanwhile(self):
        for count in (25, 27, 32):
            with self.subTest(steps=count):
                shutil.rmtree(self.kept, ignore_errors=True)
                plain, watched = run(f"train({count})"), run(f"train({count})", self.doctor, STOKER_DOCTOR_BURST="cpu")
                self.assertEqual((watched.returncode, watched.stdout.split()[:2]), (0, plain.stdout.split()[:2]), watched.stderr)
                self.records()

    def test_begins_on_no_cpu_and_beside_no_profiler(self):
        run("train(60)", self.doctor)
        self.assertNotIn("burst", {each["kind"] for each in self.records()})
        shutil.rmtree(self.kept)
        done = run("""
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
                train(60)
            print(sum(each.count for each in profiler.key_averages() if each.key == "aten::addmm"))
        """, self.doctor, STOKER_DOCTOR_BURST="cpu")
        self.assertEqual((done.returncode, done.stdout.split()[-1]), (0, "120"), done.stderr)
        self.assertNotIn("burst", {each["kind"] for each in self.records()})

    def test_starts_again_after_an_evaluation_or_a_checkpoint(self):
        for pause in ("model.eval(); model.train()", "torch.save(model.state_dict(), os.devnull)"):
            with self.subTest(pause=pause):
                shutil.rmtree(self.kept, ignore_errors=True)
                done = run(f"""
                    import gc
                    count = 0
                    def pause():
                        global count
                        count += 1
                        if count == 27:
                            model = next(each for each in gc.get_objects() if isinstance(each, torch.nn.Sequential))
                            {pause}
                    train(60, pause)
                """, self.doctor, STOKER_DOCTOR_BURST="cpu")
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = self.records()
                self.assertEqual([each["steps"] for each in lines if each["kind"] == "burst"], [5])
                trace = json.loads(next(self.kept.glob("burst-*.json")).read_text())["traceEvents"]
                marks = sorted(each["name"] for each in trace if each.get("name", "").startswith("ProfilerStep#"))
                self.assertEqual((marks[0], len(marks)), ("ProfilerStep#31", 5))

    def test_a_forked_child_finds_nothing_of_it(self):
        for step in (27, 32):  # while the profiler records, and while lines are watched
            with self.subTest(step=step):
                shutil.rmtree(self.kept, ignore_errors=True)
                done = run(f"""
                    count = 0
                    def fork():
                        global count
                        count += 1
                        if count == {step}:
                            child = os.fork()
                            if child == 0:
                                print(torch.autograd._profiler_enabled(), own == seen(), flush=True)
                                os._exit(0)
                            os.waitpid(child, 0)
                    train(60, fork)
                """, self.doctor, STOKER_DOCTOR_BURST="cpu")
                self.assertEqual((done.returncode, done.stdout.split()[:2]), (0, ["False", "True"]), done.stderr)
                self.assertEqual([each["steps"] for each in self.records() if each["kind"] == "burst"], [5])

    def test_gives_way_to_a_profiler_of_the_script(self):
        done = run("""
            import torch.profiler as profiler
            mine = profiler.profile(activities=[profiler.ProfilerActivity.CPU], schedule=profiler.schedule(wait=26, warmup=0, active=3))
            mine.start()
            train(60, mine.step)
            mine.stop()
            print(sum(each.count for each in mine.key_averages() if each.key == "aten::addmm"))
        """, self.doctor, STOKER_DOCTOR_BURST="cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split()[-1], "6")
        lines = self.records()
        self.assertNotIn("burst", {each["kind"] for each in lines})
        self.assertEqual(max(each["last_step"] for each in lines if each["kind"] == "period"), 60)


class Tensor:
    """As much of a tensor on a GPU as Waits looks at."""

    is_cuda = True

    def item(self):
        return 1.5

    def numel(self):
        return 10

    def element_size(self):
        return 4

    def is_pinned(self):
        return False

    def to(self, device, non_blocking=False):
        if device == "nowhere":
            raise ValueError(device)
        moved = Tensor()
        moved.is_cuda = device == "cuda"
        return moved


class WaitingLines(unittest.TestCase):
    """With a stand-in for a GPU's tensors: what is noted, and that everything is put back."""

    def setUp(self):
        cuda = types.SimpleNamespace(synchronize=lambda: None, empty_cache=lambda: None,
                                     **{name: type(name, (), {"synchronize": lambda self: None}) for name in ("Stream", "Event")})
        self.stack = []  # of modes, as torch keeps it
        mode = type("Mode", (), {"__enter__": lambda mode: self.stack.append(mode), "__exit__": lambda *ignored: self.stack.pop()})
        overrides = types.SimpleNamespace(TorchFunctionMode=mode, _get_current_function_mode_stack=lambda: self.stack)
        core = types.SimpleNamespace(DisableTorchFunctionSubclass=contextlib.nullcontext)
        self.torch = types.SimpleNamespace(Tensor=Tensor, cuda=cuda, overrides=overrides, _C=core)
        self.written = []
        self.addCleanup(setattr, record, "write", record.write)
        self.addCleanup(setattr, record, "at_end", record.at_end)
        record.write, record.at_end = lambda kind, **fields: self.written.append((kind, fields)), lambda function: None
        self.addCleanup(setattr, ledger.ledger, "owner", ledger.ledger.owner)
        ledger.ledger.owner = threading.get_ident()

    def rows(self, work):
        before = self.torch.cuda.synchronize, self.torch.cuda.empty_cache
        looking = waits.Waits(self.torch)
        work(lambda name, tensor, *args, **kwargs: looking.call(getattr(Tensor, name), (tensor, *args), kwargs))
        self.assertTrue(looking.end())
        self.assertEqual((before, []), ((self.torch.cuda.synchronize, self.torch.cuda.empty_cache), self.stack))
        (kind, fields), = [each for each in self.written if each[0] == "waits"]
        sums = collections.Counter()
        for each in fields["rows"]:
            sums[each["call"], each["kind"]] += each["times"]
        return dict(sums)

    def test_copies_are_told_by_their_kind(self):
        host = Tensor()
        host.is_cuda = False

        def work(call):
            call("to", host, "cuda")
            call("to", host, "cuda", non_blocking=True)
            call("to", Tensor(), "cpu")
            call("to", host, "cpu")
            call("item", host)
            call("numel", Tensor())
            self.torch.cuda.synchronize()
            self.torch.cuda.Stream().synchronize()

        self.assertEqual(self.rows(work), {("to", "to_gpu pageable blocking"): 1, ("to", "to_gpu pageable async"): 1,
                                           ("to", "to_cpu"): 1, ("synchronize", "synchronize"): 2})

    def test_other_threads_and_errors_pass(self):
        def work(call):
            thread = threading.Thread(target=self.torch.cuda.synchronize)
            thread.start()
            thread.join()
            with self.assertRaises(ValueError):
                call("to", Tensor(), "nowhere")
            self.assertEqual(call("item", Tensor()), 1.5)

        self.assertEqual(self.rows(work), {("item", "read"): 1})

    def test_begins_and_ends_outside_of_other_modes(self):
        self.stack.append("the script's")
        looking = waits.Waits(self.torch)
        self.assertEqual(self.stack, ["the script's"])
        self.assertTrue(looking.end())
        self.stack.clear()
        looking = waits.Waits(self.torch)
        self.stack.append("the script's")
        self.assertFalse(looking.end())
        self.stack.pop()
        self.assertTrue(looking.end())
        self.assertEqual(self.stack, [])


class OwnProfile(unittest.TestCase):
    """The hook for CPython 3.12 and later, beside cProfile where that keeps threads apart."""

    @staticmethod
    def work():
        def in_python(count):
            return sum(len(str(i)) for i in range(count))

        def in_json(count):
            return [json.dumps(list(range(50))) for _ in range(count)]

        for _ in range(20):
            in_python(500)
            in_json(20)
            time.sleep(0.001)

    def rows(self, profile):
        profile.enable()
        self.work()
        profile.disable()
        return {(each["library"], each["caller"].split(" ")[0]): each["seconds"] for each in calls._rows(profile.getstats())}

    @unittest.skipIf(sys.version_info >= (3, 12), "cProfile mixes threads here")
    def test_tells_what_cprofile_tells(self):
        ours, theirs = self.rows(calls.ThreadProfile()), self.rows(cProfile.Profile())
        long = {key for key, seconds in theirs.items() if seconds > 0.05 * sum(theirs.values()) and key[0] != "_lsprof"}
        self.assertGreater(len(long), 1)
        self.assertLessEqual(long, set(ours))

    def test_sees_its_own_thread_only(self):
        stop = threading.Event()
        other = threading.Thread(target=lambda: [stop.wait(0.001) for _ in iter(stop.is_set, True)])
        other.start()
        try:
            found = self.rows(calls.ThreadProfile())
        finally:
            stop.set()
            other.join()
        self.assertNotIn("threading", {library for library, _ in found})
        self.assertIn("json", {library for library, _ in found})


if __name__ == "__main__":
    unittest.main()
