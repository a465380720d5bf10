# SPDX-License-Identifier: Apache-2.0
"""tools/bundle_files/gpu-run. First with programs that only print their arguments: parts that fail, take too long or
lack data are named, the results file has everything, and no process stays behind. Then the real pack without a
compiler: ./gpu-run --dry."""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

HOME = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(HOME / "tests" / "support"))
import own_cache  # noqa: E402

SAMPLE = HOME / "examples" / "data" / "fashion-mnist-6000.tar"
SAYS = '#!/bin/sh\necho "$(basename "$0") $*"\n'
TORCH = """import os
__version__ = "2.11.0"
class cuda:
    is_available = staticmethod(lambda: bool(os.environ.get("FAKE_GPU")))
    get_device_properties = staticmethod(lambda _: "a fake GPU")
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class FakePack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pack = pathlib.Path(folder.name) / "a pack"
        programs = {"find_torch": f'#!/bin/sh\necho "{self.pack}/site/torch"\n', "launch": '#!/bin/sh\nexec "$@"\n', "stoker": SAYS,
                    "bin/job_tests": '#!/bin/sh\necho "[  SKIPPED ] 3 tests, listed below:"\n', "bin/loader_bench": SAYS,
                    **{f"bin/{name}_bench": SAYS for name in ("recompute", "chunked_loss", "tune")},
                    "bin/device_tests": '#!/bin/sh\n[ -z "$FAKE_SLEEPS" ] || sleep 600\nexit ${FAKE_FAILS:-0}\n',
                    "bench/peers/gpu.py": 'print("theirs / ours 1.5")\nprint("the last line")\n', "bench/data/starved.py": "",
                    "gpu-tests": "device_tests\njob_tests\n", "site/torch/__init__.py": TORCH}
        for name, text in programs.items():
            write(self.pack / name, text)
        sample = self.pack / "source" / "examples" / "data" / SAMPLE.name
        sample.parent.mkdir(parents=True)
        with tarfile.open(sample, "w"):
            pass
        shutil.copy(HOME / "tools" / "bundle_files" / "gpu-run", self.pack)

    def run_all(self, *words, **variables):
        """The exit code, {part: its line of output}, and the results file."""
        results = self.pack / "results.txt"
        done = subprocess.run([self.pack / "gpu-run", results, *words], env=os.environ | variables, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        parts = {line[:16].strip(): line[17:].strip() for line in done.stdout.splitlines() if line[:1].isalnum()}
        return done.returncode, parts, results.read_text(encoding="utf-8")

    def test_everything_in_order(self):
        code, parts, results = self.run_all(FAKE_GPU="1")
        self.assertEqual(code, 0, results)
        self.assertEqual([*parts][:9], ["machine", "device_tests", "job_tests", "demo fp32", "demo bf16", "steps resnet50", "steps gpt2", "copies",
                                        "resident"])
        self.assertIn("passed, 3 skipped", parts["job_tests"])
        for name in ("resident", "starved", "text"):
            self.assertIn("skipped", parts[name])
        self.assertIn("SKIPPED: the pack has no cifar10", results)
        self.assertEqual(results.count("theirs / ours 1.5"), 4)  # both parts, and the summary again
        self.assertEqual(results.count("the last line"), 2)
        self.assertIn("stoker bench tips --device cuda", results)
        self.assertIn("stoker bench ranks --device cuda", results)
        self.assertRegex(results, r"precision=fp32 device=cuda ranks=\d+")
        self.assertIn("bin/tune_bench 30", results)

    def test_without_a_gpu_it_suggests_dry(self):
        code, parts, _ = self.run_all()
        self.assertEqual((code, [*parts][:1]), (71, ["machine"]))
        self.assertNotIn("device_tests", parts)
        code, parts, results = self.run_all("--dry")
        self.assertEqual(code, 0, results)
        self.assertIn("steps gpt", parts)

    def test_a_failed_part_is_named_and_the_rest_runs(self):
        code, parts, results = self.run_all(FAKE_GPU="1", FAKE_FAILS="3")
        self.assertEqual(code, 1)
        self.assertIn("FAILED (3)", parts["device_tests"])
        self.assertIn("passed", parts["tips"])
        self.assertTrue(results.endswith("FAILED: device_tests\n"), results[-200:])

    def test_a_part_that_takes_too_long_is_stopped(self):
        code, parts, results = self.run_all("--minutes", "0.3", FAKE_GPU="1", FAKE_SLEEPS="1")
        self.assertEqual(code, 1)
        self.assertIn("TIMED OUT", parts["device_tests"])
        self.assertIn("not run", parts["tips"])
        self.assertIn("NOT RUN: the time is up", results)
        for each in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                self.assertNotIn(str(self.pack).encode(), each.read_bytes())
            except OSError:  # it has ended
                pass


def fake_data(folder):
    """A shard, photographs and a text, made from the sample."""
    with tarfile.open(SAMPLE) as tar:
        images = [each for each in tar if each.isfile() and each.name.lstrip("./").startswith("train/")][:700]
        for each in images:
            name = pathlib.PurePath(each.name).parts[-2:]
            path = folder.joinpath("imagenet-sample", *name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tar.extractfile(each).read())
    (folder / "cifar10").mkdir()
    with tarfile.open(folder / "cifar10" / "train-00000.tar", "w") as shard:
        for path in sorted((folder / "imagenet-sample").glob("*/*")):
            shard.add(path, f"{path.parent.name}/{path.name}")
    write(folder / "tinyshakespeare" / "input.txt", (HOME / "docs" / "design.md").read_text(encoding="utf-8") * 2)


class RealPack(unittest.TestCase):
    PROGRAMS = ("sh", "env", "python3", "dirname", "basename", "readlink", "sed", "grep", "tar", "cat", "uname")

    def test_dry_without_a_compiler(self):
        build = pathlib.Path(os.environ.get("STOKER_BUILD", HOME / "build" / "release"))
        if not (build / "bench" / "step_worker").exists():
            self.skipTest("needs the benchmarks: ninja benches")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            fake_data(folder / "data")
            subprocess.run([HOME / "tools" / "bundle", build, folder / "packed", folder / "data"], check=True, capture_output=True,
                           env=own_cache.OUTSIDE)
            tarball = next((folder / "packed").glob("stoker-gpu-*.tar.gz"))
            subprocess.run(["tar", "-xf", tarball, "-C", folder], check=True)
            pack = next(folder.glob("stoker-gpu-*"))
            (folder / "bin").mkdir()
            for program in self.PROGRAMS:
                (folder / "bin" / program).symlink_to(sys.executable if program == "python3" else shutil.which(program))
            environment = {key: own_cache.OUTSIDE[key] for key in ("HOME", "STOKER_CACHE", "STOKER_TORCH") if key in own_cache.OUTSIDE}
            done = subprocess.run(["./gpu-run", "--dry", folder / "results.txt"], cwd=pack, capture_output=True, text=True,
                                  env=environment | {"PATH": str(folder / "bin"), "CUDA_VISIBLE_DEVICES": ""})
            results = (folder / "results.txt").read_text(encoding="utf-8")
        self.assertEqual((done.returncode, done.stderr), (0, ""), results)
        parts = [line for line in done.stdout.splitlines() if line[:1].isalnum()]
        skipped = [line.split()[0] for line in parts if line[17:].startswith("skipped")]
        self.assertEqual(skipped, ["copies"], results)
        for peer in ("bare", "pytorch-fused", "compile", "reduce-overhead"):
            self.assertEqual(results.count(f"against {peer}: theirs / ours"), 4, results)
        self.assertIn("on the test split: accuracy", results)


if __name__ == "__main__":
    unittest.main()
