# SPDX-License-Identifier: Apache-2.0
"""bench/record in a repository of its own: when it replaces the last result, that it keeps the whole output, and that
it removes folders of the machine."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


class Record(unittest.TestCase):
    def setUp(self):
        if shutil.which("git") is None:
            self.skipTest("git is missing")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "clone"
        (self.root / "bench").mkdir(parents=True)
        for name in ("record", "commit", "cpu"):
            shutil.copy(BENCH / name, self.root / "bench" / name)
        self.result = self.root / "bench" / "results" / "speed.txt"
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=n", "-c", "user.email=e", *words], check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "all")

    def record(self, program, *words, **variables):
        """Runs a Python program; returns exit code and output."""
        done = subprocess.run([self.root / "bench" / "record", "speed", sys.executable, "-c", program, *words],
                              env=os.environ | variables, capture_output=True, text=True)
        return done.returncode, done.stdout

    def kept(self):
        return self.result.read_text() if self.result.exists() else None

    def test_keeps_the_whole_output_of_a_success(self):
        code, shown = self.record("import sys; print('figures', flush=True); print('a warning', file=sys.stderr)")
        self.assertEqual(code, 0)
        self.assertIn("\nfigures\na warning\n", shown)
        self.assertEqual(self.kept(), shown)

    def test_a_failure_or_skip_keeps_the_last_good_result_and_returns_its_code(self):
        self.record("print('good')")
        good = self.kept()
        for wanted in (1, 77, 3):
            code, shown = self.record(f"print('half a table'); raise SystemExit({wanted})")
            self.assertEqual(code, wanted)
            self.assertIn("half a table", shown)
            self.assertEqual(self.kept(), good)
            failed = self.result.with_name("speed.failed.txt")
            self.assertEqual(failed.read_text() if failed.exists() else None, None if wanted == 77 else shown)
            self.record("print('good again')")
            self.assertEqual([each.name for each in self.result.parent.iterdir()], ["speed.txt"])
            good = self.kept()

    def test_results_and_documents_do_not_make_a_commit_dirty_but_code_does(self):
        self.record("print(1)")
        self.commit()
        (self.root / "README.md").write_text("text")
        self.git("add", "-A")
        self.record("print(2)")
        self.assertIn("print(2)", self.kept())
        self.assertNotIn("-dirty", self.kept())
        (self.root / "bench" / "commit").write_text((BENCH / "commit").read_text() + "# changed\n")
        self.record("print(3)")
        self.assertRegex(self.kept(), "commit:  [0-9a-f]+-dirty\n")

    def test_no_folder_of_the_machine_is_kept(self):
        home, temporary = self.root.parent / "home", self.root.parent / "temporary"
        temporary.mkdir()
        said = f"{self.root}/bench/x.cpp {home}/data {temporary}/stoker-1234/run: {temporary}/other,"
        code, _ = self.record(f"print({said!r})", f"{self.root}/build/demo", "/elsewhere/cifar10", HOME=str(home), TMPDIR=str(temporary))
        self.assertEqual(code, 0)
        self.assertIn("bench/x.cpp ~/data TMP: TMP,", self.kept())
        self.assertRegex(self.kept(), "command: .* build/demo .../cifar10\n")
        self.assertNotIn(str(self.root.parent), self.kept())


class Cpu(unittest.TestCase):
    """bench/cpu: the name for results of one kind of CPU."""

    def kind(self, text):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            return subprocess.run([BENCH / "cpu", file.name], check=True, capture_output=True, text=True).stdout.strip()

    def test_names_families_and_instructions(self):
        def info(model, flags, first=""):
            return f"processor\t: 0\n{first}model name\t: {model}\nflags\t\t: fpu {flags} sse2\nprocessor\t: 1\nmodel name\t: other\n"
        xeon, wide = "Intel(R) Xeon(R) Processor", "avx2 avx512f avx512bw avx512_vnni"
        self.assertEqual(self.kind(info(xeon, wide)), "xeon-avx512-vnni")
        self.assertEqual(self.kind(info(xeon, f"{wide} amx_tile")), "xeon-avx512-vnni-amx")
        self.assertEqual(self.kind(info("AMD EPYC 7B13", "avx avx2")), "epyc-avx2")
        self.assertEqual(self.kind(info("AMD EPYC", "avx avx2 avx_vnni")), "epyc-avx2")
        amd = "vendor_id\t: AuthenticAMD\ncpu family\t: {}\n"
        self.assertEqual(self.kind(info("AMD EPYC", wide, amd.format(26))), "epyc-zen5-avx512-vnni")
        self.assertEqual(self.kind(info("AMD EPYC", wide, amd.format(25))), "epyc-zen4-avx512-vnni")
        self.assertEqual(self.kind(info("AMD EPYC", "avx2", amd.format(25))), "epyc-zen3-avx2")
        self.assertEqual(self.kind(info("AMD EPYC", "avx2", amd.format(23))), "epyc-avx2")
        self.assertEqual(self.kind(info(xeon, wide, "vendor_id\t: GenuineIntel\ncpu family\t: 26\n")), "xeon-avx512-vnni")
        self.assertEqual(self.kind("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n"), os.uname().machine)


if __name__ == "__main__":
    unittest.main()
