# SPDX-License-Identifier: Apache-2.0
"""bootstrap and the bundle's launcher with a fake python3: torch is installed completely or not at all, the right one
is found, and a wrong one is refused with a helpful message. Needs no network."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Fills pip's --target folder like the real wheel; other calls of python3 (find_torch's) find no torch.
PIP = """#!/bin/sh
case "$*" in
  *"-m pip install"*) ;;
  *) exit 1 ;;
esac
for last; do :; done
while [ "$1" != --target ]; do shift; done
case "$last" in nvidia-cuda-*)
  mkdir -p "$2/nvidia/cu13/include/crt" "$2/nvidia/cu13/bin"
  touch "$2/nvidia/cu13/include/crt/host_config.h"
  printf '#!/bin/sh\necho "Cuda compilation tools, release 13.0, V13.0.88"\n' > "$2/nvidia/cu13/bin/nvcc"
  chmod +x "$2/nvidia/cu13/bin/nvcc"
  exit 0
esac
mkdir -p "$2/torch/lib" "$2/torch/include/ATen/core"
touch "$2/torch/include/ATen/core/Tensor.h"
echo "__version__ = '2.11.0+cu130'" > "$2/torch/version.py"
%s
touch "$2/torch/lib/libtorch_cpu.so"
"""


@unittest.skipIf(shutil.which("dpkg-query") is None, "bootstrap is for Debian and Ubuntu")
class Bootstrap(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.cache = self.folder / "cache"

    def run_tool(self, pip_step, *command, **more):
        (self.folder / "python3").write_text(PIP % pip_step, encoding="utf-8")
        (self.folder / "python3").chmod(0o755)
        environment = {"PATH": f"{self.folder}:{os.environ['PATH']}", "STOKER_CACHE": str(self.cache), "HOME": "/", **more}
        command = command or (ROOT / "tools" / "bootstrap",)
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def test_torch_is_installed_once(self):
        done = self.run_tool(":")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([each.name for each in self.cache.iterdir()], ["torch-2.11.0"])
        again = self.run_tool("exit 1")  # pip would fail if it were called again
        self.assertEqual((again.returncode, again.stderr), (0, ""))

    def test_a_failed_download_leaves_nothing(self):
        for step in ("exit 1", "kill -TERM $PPID; sleep 1; exit 1"):
            done = self.run_tool(step)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(list(self.cache.iterdir()), [])
        self.assertIn("could not install torch==2.11.0", self.run_tool("exit 1").stderr)

    def toolkit(self, release):
        """A CUDA_HOME with an nvcc of that release."""
        folder = self.folder / f"cuda-{release}"
        (folder / "include" / "crt").mkdir(parents=True)
        (folder / "include" / "crt" / "host_config.h").touch()
        (folder / "bin").mkdir()
        (folder / "bin" / "nvcc").write_text(f'#!/bin/sh\necho "Cuda compilation tools, release {release}, V{release}.1"\n')
        (folder / "bin" / "nvcc").chmod(0o755)
        return folder

    def test_nvcc_is_downloaded_once_if_no_toolkit_fits(self):
        with_cuda = 'mkdir -p "$2/nvidia/cu13/include"; touch "$2/nvidia/cu13/include/cuda_runtime.h"'
        nowhere = {"CUDA_HOME": "/nowhere", "PATH": f"{self.folder}:/usr/bin:/bin"}
        missing = self.run_tool("exit 1", ROOT / "tools" / "find_nvcc", **nowhere)
        self.assertEqual((missing.returncode, missing.stdout), (1, ""))
        self.assertIn("no nvcc for CUDA 13 found", missing.stderr)
        done = self.run_tool(with_cuda, **nowhere)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(each.name for each in self.cache.iterdir()), ["cuda-nvcc-13.0.88", "torch-2.11.0"])
        cached = self.cache / "cuda-nvcc-13.0.88" / "nvidia" / "cu13" / "bin" / "nvcc"
        self.assertEqual(self.run_tool("exit 1", ROOT / "tools" / "find_nvcc", **nowhere).stdout, f"{cached}\n")
        again = self.run_tool("exit 1", **nowhere)
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        shutil.rmtree(self.cache / "cuda-nvcc-13.0.88")
        old = self.toolkit("12.9")  # the wrong version
        refused = self.run_tool("exit 1", ROOT / "tools" / "find_nvcc", **nowhere | {"CUDA_HOME": str(old)})
        self.assertIn(f"{old}/bin/nvcc is for CUDA 12.9", refused.stderr)
        fits = self.toolkit("13.2")
        self.assertEqual(self.run_tool("exit 1", **nowhere | {"CUDA_HOME": str(fits)}).stderr, "")
        self.assertFalse((self.cache / "cuda-nvcc-13.0.88").exists())

    def torch(self, name, version):
        folder = self.folder / name / "torch"
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "libtorch_cpu.so").touch()
        (folder / "include" / "ATen" / "core").mkdir(parents=True)
        (folder / "include" / "ATen" / "core" / "Tensor.h").touch()
        (folder / "version.py").write_text(f"__version__ = '{version}'\n", encoding="utf-8")
        return folder

    def test_a_wrong_setting_is_refused_before_any_download(self):
        cached, wrong = self.torch("cache/torch-2.11.0", "2.11.0"), self.torch("wrong", "2.1.0")
        called = self.folder / "called"
        before = cached.stat().st_ino
        for setting, words in ((wrong, f"STOKER_TORCH={wrong} is torch 2.1.0, torch 2.11.0 is needed"),
                               (self.folder, f"STOKER_TORCH={self.folder} contains no torch")):
            done = self.run_tool(f"touch {called}", STOKER_TORCH=str(setting))
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"bootstrap: error: {words}", done.stderr)
        self.assertFalse(called.exists(), "pip was called")
        self.assertEqual(cached.stat().st_ino, before, "the torch in the cache was replaced")
        self.assertEqual([each.name for each in self.cache.iterdir()], ["torch-2.11.0"])

    def launch(self, **more):
        bundle = self.folder / "bundle"
        bundle.mkdir(exist_ok=True)
        for tool in ("bundle_files/launch", "find_torch"):
            shutil.copy(ROOT / "tools" / tool, bundle)
        return self.run_tool("exit 1", bundle / "launch", "/bin/sh", "-c", 'echo "$LD_LIBRARY_PATH"', **more)

    def test_the_launcher_uses_the_right_torch(self):
        right, wrong = self.torch("right", "2.11.0+cu130"), self.torch("wrong", "2.1.0")
        self.assertIn(f":{right}/lib", self.launch(STOKER_TORCH=str(right)).stdout)
        refused = self.launch(STOKER_TORCH=str(wrong))
        self.assertEqual(refused.returncode, 71)
        self.assertIn(f"STOKER_TORCH={wrong} is torch 2.1.0, torch 2.11.0 is needed", refused.stderr)
        nothing = self.launch(STOKER_TORCH=str(self.folder))
        self.assertIn("contains no torch", nothing.stderr)
        nowhere = self.launch()
        self.assertEqual(nowhere.returncode, 71)
        self.assertIn("stoker: no torch 2.11.0 found: pip install torch==2.11.0", nowhere.stderr)
        cached = self.torch("cache/torch-2.11.0", "2.11.0")
        self.assertIn(f":{cached}/lib", self.launch().stdout)


if __name__ == "__main__":
    unittest.main()
