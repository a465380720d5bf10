# SPDX-License-Identifier: Apache-2.0
"""`stoker doctor --try` and `--patch` on real Python scripts: what is tried gets measured, the script and its folder stay
as they are, and the patch is what was tried."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import textwrap
import time
import unittest

from script_doctor_test import ENVIRONMENT, ROOT, STOKER

SHIM = ROOT / "src/stoker/observe/script/shim"
OVERLAY = 'd=$(mktemp -d) && mkdir $d/l $d/u $d/w && mount -t overlay overlay -o lowerdir=$d/l,upperdir=$d/u,workdir=$d/w $d/l; code=$?; umount $d/l; rm -rf $d; exit $code'
LAYERS = subprocess.run(["unshare", "-m", "sh", "-c", OVERLAY], capture_output=True).returncode == 0

# Samples that sleep: workers help on every machine.
TRAINING = """
    import os, sys, time
    import torch
    from torch import nn

    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 10_000_000
        def __getitem__(self, index):
            time.sleep(float(os.environ.get("SLEEP", 0.005)))
            return torch.ones(8), index % 2

    def train(steps):
        model = nn.Linear(8, 2)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        loader = torch.utils.data.DataLoader(Slow(), batch_size=8, num_workers=0)
        for step, (inputs, targets) in enumerate(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            if step == steps:
                break
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.temporary = pathlib.Path(folder.name) / "tmp"
        self.folder = pathlib.Path(folder.name) / "a script"
        self.temporary.mkdir()
        self.folder.mkdir()
        self.environment = {**ENVIRONMENT, "TMPDIR": str(self.temporary), "XDG_STATE_HOME": str(self.temporary / "state")}

    def write(self, text, training=TRAINING):
        (self.folder / "train.py").write_text(textwrap.dedent(training) + textwrap.dedent(text))

    def start(self, *flags, command=("python3", "train.py"), **options):
        return subprocess.Popen([STOKER, "doctor", *flags, "--", *command], cwd=self.folder, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **{"env": self.environment, **options})

    def run_try(self, *flags, answer="", **options):
        process = self.start("--try", "--steps", "20", "--pairs", "3", *(() if LAYERS else ("--in-place",)), *flags, **options)
        out, err = process.communicate(answer, timeout=300)
        return process.returncode, out, err

    def all_gone(self, at_least=1):
        """The processes that left a file pid-N."""
        begun = [each.name[4:] for each in self.temporary.glob("pid-*")]
        self.assertGreaterEqual(len(begun), at_least)
        self.assertEqual([each for each in begun if pathlib.Path(f"/proc/{each}").exists()], [])

    def scratch(self):
        return [each.name for each in self.temporary.iterdir() if each.name.startswith("stoker-doctor")]


class Try(Scripts):
    def test_measures_what_helps_and_keeps_the_folder(self):
        self.write("""
            with open("log.txt", "a") as log:
                log.write("another line")
            with open("new.txt", "w") as new:
                new.write("new")
            import shutil
            shutil.rmtree("old")
            os.mkdir("old")
            train(100_000)
        """)
        (self.folder / "log.txt").write_text("a line\n")
        (self.folder / "old").mkdir()
        (self.folder / "old" / "best.pt").write_text("kept")
        code, out, err = self.run_try("--yes", "--json", "--patch", "cure.patch")
        self.assertEqual(code, 0, err)
        self.assertIn("predictions here so far: 1 prediction;", err)
        tried = json.loads(out)["tried"][0]
        self.assertRegex(tried["option"], r"^num_workers=\d+$")
        self.assertRegex(tried["where"], r"^train\.py:\d+$")
        self.assertTrue(tried["kept"], out)
        self.assertGreater(tried["measured"]["low"], 1.5)  # the samples sleep for 40 ms per step
        self.assertEqual(json.loads(out)["diagnosis"]["findings"][0]["rule"], "input_wait")
        if LAYERS:
            self.assertEqual((self.folder / "log.txt").read_text(), "a line\n")
            self.assertFalse((self.folder / "new.txt").exists())
            self.assertEqual((self.folder / "old" / "best.pt").read_text(), "kept")
        self.assertEqual(self.scratch(), [])
        score = [json.loads(line) for line in (self.temporary / "state/stoker/predictions.jsonl").read_text().splitlines()]
        self.assertEqual((score[0]["rule"], score[0]["measured"]), ("input_wait", tried["measured"]["median"]))
        subprocess.run(["git", "apply", "cure.patch"], cwd=self.folder, check=True)
        self.assertIn(tried["option"], (self.folder / "train.py").read_text())

    def test_without_rights_a_user_namespace_keeps_the_folder(self):
        ordinary = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
        if os.geteuid() == 0 and subprocess.run([*ordinary, "unshare", "-Urm", "true"], capture_output=True).returncode == 0:
            self.write("import shutil; open('log.txt', 'a').write('another line'); shutil.rmtree('old'); os.mkdir('old'); train(100_000)")
            (self.folder / "old").mkdir()
            (self.folder / "old" / "best.pt").write_text("kept")
            (self.folder / "log.txt").write_text("a line")
            self.environment["SLEEP"] = "0"
            done = subprocess.run([*ordinary, STOKER, "doctor", "--try", "--yes", "--steps", "20", "--", "python3", "train.py"],
                                  cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((self.folder / "log.txt").read_text(), "a line")
            self.assertEqual((self.folder / "old" / "best.pt").read_text(), "kept")
            self.assertEqual(self.scratch(), [])
        else:
            self.skipTest("needs root, setpriv and user namespaces")

    @unittest.skipUnless(LAYERS, "needs the right to mount")
    def test_a_file_system_inside_of_the_folder_is_kept_too(self):
        self.write("open('data/best.pt', 'w').write('other'); train(100_000)")
        (self.folder / "data").mkdir()
        self.environment["SLEEP"] = "0"
        script = 'mount -t tmpfs none data && printf kept > data/best.pt && "$0" doctor --try --yes --steps 20 -- python3 train.py; echo; cat data/best.pt'
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, STOKER], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=300)
        self.assertIn("looking at the script as it is", done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "kept")

    def test_nothing_runs_without_a_yes(self):
        self.write("open(os.environ['TMPDIR'] + '/ran', 'w')")
        code, out, err = self.run_try(answer="no\n")
        self.assertEqual((code, out, "nothing was done" in err), (130, "", True), err)
        self.assertIn("`python3 train.py`", err)
        self.assertFalse((self.temporary / "ran").exists())

    def test_a_script_that_fails_is_quoted(self):
        self.write("train(15); sys.exit('no data in /nowhere')")
        code, _, err = self.run_try("--yes")
        self.assertEqual(code, 65)
        self.assertIn("no data in /nowhere", err)
        self.assertEqual(self.scratch(), [])

    def test_who_does_not_listen_to_ctrl_c_is_ended(self):
        self.write("""
            import signal, threading
            open(os.environ["TMPDIR"] + f"/pid-{os.getpid()}", "w")
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            train(100_000)
        """)
        self.environment["SLEEP"] = "0"
        code, out, err = self.run_try("--yes")
        self.assertEqual(code, 0, err)
        self.all_gone()

    def test_ranks_with_sessions_of_their_own_are_ended(self):
        self.write("""
            import signal
            open(os.environ["TMPDIR"] + f"/pid-{os.getpid()}", "w")
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            torch.distributed.init_process_group("gloo")
            train(100_000)
        """)
        self.environment["SLEEP"] = "0"
        code, out, err = self.run_try("--yes", command=("python3", "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"))
        self.assertEqual(code, 0, err)
        self.all_gone(2)

    def test_ctrl_c_ends_all(self):
        self.write("open(os.environ['TMPDIR'] + f'/pid-{os.getpid()}', 'w'); train(100_000)")
        process = self.start("--try", "--yes", *(() if LAYERS else ("--in-place",)))
        end = time.monotonic() + 60
        while not list(self.temporary.glob("pid-*")) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("stopped", err)
        self.all_gone()
        self.assertEqual(self.scratch(), [])

    def test_bad_words(self):
        for words, said in ((("--yes", "--", "python3"), "--try"), (("--try", "runs"), "--try is for a script"), (("--try",), "two dashes"),
                            (("--try", "--pairs", "1", "--", "python3"), "pairs"), (("--apply", "--", "python3"), "--apply is for a run"),
                            (("--html", "x.html", "--", "python3"), "--html is for a PATH"), (("--patch", "x", "runs"), "--patch is for a script"),
                            (("--try", "--yes", "--keep", "x", "--", "python3"), "--keep is for"),
                            (("train.py",), "stoker doctor -- python train.py"), (("python3", "train.py"), "stoker doctor -- python train.py"),
                            (("--", "./train.py"), "`python` before the script")):
            self.write("pass")
            done = subprocess.run([STOKER, "doctor", *words], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)


class Changes(Scripts):
    """Each change that the shim can make, in a script that says what it finds."""

    SEEN = """
        torch.autograd.set_detect_anomaly(True)
        torch.set_num_threads(3)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(2))
        model(torch.ones(1, 3, 8, 8))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=False)
        loader = torch.utils.data.DataLoader(range(1000), 2, num_workers=1, prefetch_factor=5)
        kept = []
        for step, batch in enumerate(loader):
            optimizer.zero_grad(False)
            kept.append(model[0].weight.grad)
            model(torch.ones(2, 3, 8, 8)).sum().backward()
            optimizer.step()
            if step == 40:
                break
        import gc
        state = {
            "num_workers": loader.num_workers, "persistent_workers": loader.persistent_workers, "pin_memory": loader.pin_memory,
            "prefetch_factor": loader.prefetch_factor, "fused": optimizer.defaults["fused"], "set_to_none": kept[-1] is None,
            "gc.freeze": gc.get_freeze_count() > 0, "torch.set_num_threads": torch.get_num_threads(),
            "torch.autograd.set_detect_anomaly": torch.is_anomaly_enabled(),
            "memory_format": model[0].weight.is_contiguous(memory_format=torch.channels_last),
            "torch.set_float32_matmul_precision": torch.get_float32_matmul_precision(),
            "torch.backends.cudnn.benchmark": torch.backends.cudnn.benchmark,
        }
        print("state", __import__("json").dumps(state))
    """
    AS_IT_IS = {"num_workers": 1, "persistent_workers": False, "pin_memory": False, "prefetch_factor": 5, "fused": False,
                "set_to_none": False, "gc.freeze": False, "torch.set_num_threads": 3, "torch.autograd.set_detect_anomaly": True,
                "memory_format": False, "torch.set_float32_matmul_precision": "highest", "torch.backends.cudnn.benchmark": False}

    def state(self, *options):
        records = tempfile.mkdtemp(dir=self.temporary)
        trial = {"changes": [{"option": each, "where": ""} for each in options], "steps": 5, "seconds": 60, "watch": False}
        environment = {**self.environment, "PYTHONPATH": f"{SHIM}:{ENVIRONMENT['PYTHONPATH']}", "STOKER_DOCTOR_RECORDS": records,
                       "STOKER_DOCTOR_TRIAL": json.dumps(trial)}
        done = subprocess.run(["python3", "train.py"], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        measured = json.loads((pathlib.Path(records) / "measured.json").read_text())
        self.assertEqual((measured["steps"], measured["refused"]), (5, []))
        self.assertGreater(measured["seconds"], 0)
        return json.loads(re.search("state (.*)", done.stdout)[1])

    def test_nothing_changes_by_itself(self):
        self.write(self.SEEN)
        self.assertEqual(self.state(), self.AS_IT_IS)

    def test_each_changes_one_thing(self):
        self.write(self.SEEN)
        groups = [  # of changes that have nothing to do with each other
            {"num_workers=2": 2, "set_to_none=True": True, "gc.freeze()": True, "torch.autograd.set_detect_anomaly(False)": False,
             "torch.backends.cudnn.benchmark=True": True},
            {"persistent_workers=True": True, "fused=True": True, "torch.set_num_threads(2)": 2,
             "torch.set_float32_matmul_precision('high')": "high"},
            {"memory_format=torch.channels_last": True},
        ]
        for changed in groups:
            with self.subTest(changed):
                wanted = {re.match(r"[\w.]+", option)[0]: value for option, value in changed.items()}
                self.assertEqual(self.state(*changed), {**self.AS_IT_IS, **wanted})

    def measured_steps(self):
        records = pathlib.Path(tempfile.mkdtemp(dir=self.temporary))
        trial = {"changes": [], "steps": 60, "seconds": 60, "watch": False}
        environment = {**self.environment, "PYTHONPATH": f"{SHIM}:{ENVIRONMENT['PYTHONPATH']}", "STOKER_DOCTOR_RECORDS": str(records),
                       "STOKER_DOCTOR_TRIAL": json.dumps(trial)}
        subprocess.run(["python3", "train.py"], cwd=self.folder, env=environment, capture_output=True, check=True, timeout=120)
        return json.loads((records / "measured.json").read_text())["steps"]

    def test_a_short_script_is_measured_as_far_as_it_goes(self):
        self.write(self.SEEN)  # 41 steps; 15 warm up, since five batches may be made ahead
        self.assertEqual(self.measured_steps(), 26)

    def test_a_loader_with_its_own_way_to_begin_is_seen(self):
        self.write("""
            class Endless(torch.utils.data.DataLoader):
                iterator = None
                def __iter__(self):
                    self.iterator = self.iterator or self._get_iterator()
                    while True:
                        yield next(self.iterator)
            model = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(model.parameters())
            for step, batch in zip(range(41), Endless(range(1000), 2, num_workers=2, prefetch_factor=5)):
                model(torch.ones(1, 1)).sum().backward()
                optimizer.step()
        """)
        self.assertEqual(self.measured_steps(), 21)  # ten warm up, and ten batches may be made ahead

    def test_two_at_once(self):
        self.write(self.SEEN)
        self.assertEqual(self.state("num_workers=2, torch.set_num_threads(1)"),
                         {**self.AS_IT_IS, "num_workers": 2, "torch.set_num_threads": 1})

    def test_without_workers_their_settings_go(self):
        self.write(self.SEEN)
        self.assertEqual(self.state("num_workers=0"), {**self.AS_IT_IS, "num_workers": 0, "prefetch_factor": None})

    def test_workers_get_one_thread(self):
        self.write("""
            class Threads(torch.utils.data.Dataset):
                __len__ = lambda self: 1000
                __getitem__ = lambda self, index: torch.get_num_threads()
            loader = torch.utils.data.DataLoader(Threads(), 2, num_workers=1, worker_init_fn=lambda worker: torch.set_num_threads(3))
            model = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(model.parameters())
            for step, batch in zip(range(20), loader):
                model(torch.ones(1, 1)).sum().backward()
                optimizer.step()
            print("state", batch.max().item())
        """)
        self.assertEqual(self.state(), 3)
        self.assertEqual(self.state("worker_init_fn=lambda worker: torch.set_num_threads(1)"), 1)

    def test_freed_memory_is_kept(self):
        self.write("""
            import resource
            model = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(model.parameters())
            faults = []
            for step in range(20):
                before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
                torch.ones(40_000_000)  # 153 MiB: more than glibc ever keeps by itself
                faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
                model(torch.ones(1, 1)).sum().backward()
                optimizer.step()
            # The kernel may move pages at any time, which adds faults to a step: the step with the fewest counts.
            print("state", int(min(faults) > 60))  # 77 huge pages of 2 MiB, or 39,063 of 4 KiB
        """)
        self.assertEqual(self.state(), 1)
        self.assertEqual(self.state("MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_MMAP_MAX_=0"), 0)

    def test_compiled_for_all_shapes(self):
        self.write("""
            compiled = []
            def backend(graph, inputs):
                compiled.append(graph)
                return graph.forward
            double = torch.compile(lambda x: 2 * x, backend=backend)
            model = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(model.parameters())
            for step in range(20):
                double(torch.ones(3 + step % 3))
                model(torch.ones(1, 1)).sum().backward()
                optimizer.step()
            print("state", len(compiled))
        """)
        self.assertEqual(self.state(), 2)
        self.assertEqual(self.state("dynamic=True"), 1)

    def test_both_sides_know_the_same_changes(self):
        names = lambda path, begin, pattern: re.findall(pattern, path.read_text().split(begin)[1].split("};" if path.suffix == ".cpp" else "\n}")[0])
        known = names(ROOT / "src/stoker/study/doctor/cures.cpp", "kWays = ", r'"([\w.]+)"')
        self.assertEqual(sorted(known), sorted(names(SHIM / "stoker_shim/trial.py", "_WAYS = ", r'"([\w.]+)":')))


class Patch(Scripts):
    """The diff for options at places of a script."""

    def patched(self, text, *changes):
        self.write(text, training="")
        words = json.dumps([{"option": option, "where": f"train.py:{line}"} for option, line in changes])
        done = subprocess.run(["python3", SHIM / "write_patch.py", words], cwd=self.folder, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "it.patch").write_bytes(done.stdout)
        if b"@@" in done.stdout:
            subprocess.run(["git", "apply", "it.patch"], cwd=self.folder, check=True)
        return (self.folder / "train.py").read_text(), done.stdout.decode()

    def test_arguments(self):
        cases = [
            ("f(DataLoader(d))\n", "num_workers=2", "f(DataLoader(d, num_workers=2))\n"),
            ("DataLoader(d, num_workers = 4, shuffle=True)\n", "num_workers=2", "DataLoader(d, num_workers = 2, shuffle=True)\n"),
            ("DataLoader(d, 1, True, None, None, 4)\n", "num_workers=2", "DataLoader(d, 1, True, None, None, 2)\n"),
            ("DataLoader(\n    'é',  # why\n    batch_size=4,\n)\n", "pin_memory=True", "DataLoader(\n    'é',  # why\n    batch_size=4, pin_memory=True,\n)\n"),
            ("make(); o = optim.Adam(m.parameters())", "fused=True", "make(); o = optim.Adam(m.parameters(), fused=True)"),
            ("o.zero_grad()\r\nx = 1\r\n", "set_to_none=True", "o.zero_grad(set_to_none=True)\r\nx = 1\r\n"),
            ("o.zero_grad(False)\n", "set_to_none=True", "o.zero_grad(True)\n"),
        ]
        for text, option, wanted in cases:
            with self.subTest(text):
                (self.folder / "train.py").write_bytes(text.encode())
                words = json.dumps([{"option": option, "where": "train.py:1"}])
                done = subprocess.run(["python3", SHIM / "write_patch.py", words], cwd=self.folder, capture_output=True, check=True)
                (self.folder / "it.patch").write_bytes(done.stdout)
                subprocess.run(["git", "apply", "it.patch"], cwd=self.folder, check=True)
                self.assertEqual((self.folder / "train.py").read_bytes().decode(), wanted)

    def test_what_would_break_the_script_is_not_in_the_patch(self):
        for text, option in (("loader = DataLoader(d, **options)\n", "num_workers=2"), ("import re\nre.compile('x')\n", "dynamic=True"),
                             ("DataLoader(d, worker_init_fn=seed)\n", "worker_init_fn=lambda worker: torch.set_num_threads(1)")):
            with self.subTest(text):
                after, said = self.patched(text, (option, 1 if "Loader" in text else 0))
                self.assertEqual(after, text)
                self.assertIn(f"not in the patch: {option}: ", said)

    def test_one_of_two_flags_that_exclude_each_other(self):
        text, _ = self.patched("o = Adam(p, foreach=True, lr=1)\n", ("fused=True", 1))
        self.assertEqual(text, "o = Adam(p, foreach=None, lr=1, fused=True)\n")

    def test_a_function_for_workers_keeps_its_threads(self):
        text, _ = self.patched("from torch import nn\n\ndef seed(worker):\n    torch.set_num_threads(1)\n", ("torch.set_num_threads(2)", 0))
        self.assertEqual(text, "from torch import nn\nimport torch\n\ntorch.set_num_threads(2)\n\ndef seed(worker):\n    torch.set_num_threads(1)\n")

    def test_lines(self):
        text, _ = self.patched("import torch\n\ntorch.set_num_threads(9)\nDataLoader(d)\n", ("torch.backends.cudnn.benchmark=True", 0),
                               ("num_workers=2, torch.set_num_threads(1)", 4))
        self.assertEqual(text, "import torch\n\ntorch.backends.cudnn.benchmark = True\n\ntorch.set_num_threads(1)\nDataLoader(d, num_workers=2)\n")

    def test_what_has_no_place_is_named(self):
        before = "import torch\nDataLoader(x for x in d)\nDataLoader(*them)\n"
        text, said = self.patched(before, ("gc.freeze()", 0), ("num_workers=2", 2), ("num_workers=3", 3), ("fused=True", 1),
                                  ("MALLOC_TRIM_THRESHOLD_=1 MALLOC_MMAP_MAX_=0", 0))
        self.assertEqual(text, before)
        self.assertEqual(said.count("not in the patch"), 6)
        self.assertIn("MALLOC_MMAP_MAX_=0: it belongs into the environment", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
