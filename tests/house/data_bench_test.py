# SPDX-License-Identifier: Apache-2.0
"""bench/data/run with sides that only print figures: the table has every row with its verdict, a missing part is
reported, and a side that dies or prints nothing fails the run by name. Also the verdicts of a row, worked out by
hand."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HOME = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "bench" / "data"))
import compare  # noqa: E402
import jpeg  # noqa: E402
from row import Row  # noqa: E402

OURS = """#!/bin/sh
[ "$1" != "mode=$FAKE_DIES" ] || { echo "alas" >&2; exit 3; }
[ "$1" != "mode=$FAKE_MUTE" ] || { echo "no figures today"; exit 0; }
for word; do
  case $word in data=*) folder=${word#data=} ;; remove=*) lost=${word#remove=} ;; block=*) blocked=${word#block=} ;;
    cache=*) cache=${word#cache=} ;; esac
done
case "$*" in
  mode=loader*damaged*replace=1*)
    cat "$folder/$lost" "$folder/$blocked" >/dev/null && rm "$folder/$lost" "$folder/$blocked" && mkdir "$folder/$blocked" || exit 3
    echo '{"per_cpu_second": 297, "bad": '${FAKE_BAD:-2}'}' ;;
  mode=loader*replace=1*) echo '{"per_cpu_second": 300, "bad": '${FAKE_BAD_WHOLE:-0}'}' ;;
  mode=loader*rows=8*) echo '{"per_cpu_second": 500, "stage_ms": {"read": 0.1, "decode": 1}}' ;;
  mode=loader*threads=2*) echo '{"per_cpu_second": 440, "per_second": 570, "stage_ms": {"read": 1, "decode": 2, "augment": 3}}' ;;
  mode=loader*) echo '{"per_cpu_second": 450, "per_second": 300, "stage_ms": {"read": 0.1, "decode": 2, "augment": 0.4}}' ;;
  mode=decode*) echo '{"per_cpu_second": 250}' ;;
  mode=jpeg*|mode=shrink*)
    case "$*" in *targets=avx2*) own=0.75 targets=AVX2 ;; *) own=0.5 targets=AVX3_DL ;; esac
    group='{"images": 3, "ms": {"library": [1, 1], "fast": [0.5, 0.5], "own": ['$own', '$own'], "own, known rows": [0.4, 0.4]},
      "by_photo": {"own": [1, 2, 3], "fast": [1, 2, 3], "own, known rows": [2, 2.5, 3]}}'
    echo '{"targets": "'$targets'", "photos": 3, "known_rows": 2, "crop": {"all": '$group', "4:2:0": '$group'}, "full": {"all": '$group'},
      "shrink": {"all": '$group', "2": '$group', "4": '$group', "8": '$group'}}' | tr -d '\n' ;;
  mode=resize*) echo '{"ms": 0.1, "twin_ms": 0.8}' ;;
  mode=ram*) [ -z "$FAKE_WAITS" ] && echo '{"per_cpu_second": 850, "gather_per_cpu_second": 1000}' || echo '{"waits": "nobody wrote it"}' ;;
  mode=table*) echo '{"per_cpu_second": 3e6}' ;;
  mode=first*cache=*) echo '{"seconds": 0.1}' ;;
  mode=open*) mkdir "$cache" 2>/dev/null && seconds=0.4 || seconds=0.01
    find "$folder" -type f | wc -l | sed "s/.*/{\\"cpu_seconds\\": $seconds, \\"mb\\": 0.2, \\"images\\": &}/" ;;
  mode=far*) echo '{"seconds": 0.00001}' ;;
  mode=memory*) echo '{"mb": 1600}' ;;
  mode=boundary*) echo '{"batches": -0.1}' ;;
  mode=verdict*) echo '{"right": '${FAKE_RIGHT:-12}', "of": 12, "named": {"open": "data-starved 74 %: open"},
    "two_at_once": {"right": 4, "of": 5, "named": {"read, and step": "data-starved 37 %: read"}}}' | tr -d '\n' ;;
  mode=forecast*) echo '{"cores_off": 0.01, "sleeping_off": -0.08}' ;;
  mode=autotune*load=cheap*turns=5*) echo '{"shares": [0.94, 0.97, 0.98, 0.99, 1.01], "auto": 98, "best": 100, "threads": 2, "way": "w"}' ;;
  mode=autotune*load=decode*) echo '{"shares": [0.96, 0.97, 0.98, 0.99, 1.01], "auto": 98, "best": 100, "threads": 2, "way": "w"}' ;;
  mode=autotune*load=disk*) echo '{"shares": [0.9, 0.92, 0.93, 0.99, 1.01], "auto": 93, "best": 100, "threads": 18, "way": "w"}' ;;
  mode=autotune*load=consumer*) echo '{"shares": [1, 1], "auto": 98, "best": 100, "threads": 1, "way": "w"}' ;;
  *) echo '{"skipped": "no CUDA"}' ;;
esac
"""
THEIRS = """import os, sys
rates = {"pil": 100, "tensor": 200, "ffcv": 200, "cifar": 100, "table": 1e4}
peer = sys.argv[1]
if peer == os.environ.get("FAKE_DIES"):
    sys.exit("peer gone")
if peer == "ffcv" and os.environ["PYTHONPATH"] != "packages-of-bench/data/requirements-ffcv.txt:site":
    sys.exit("not FFCV's environment: " + os.environ["PYTHONPATH"])
seconds = '"seconds": 0.4'
print("a line before")
print("{" + (f'"per_cpu_second": {rates[peer]}' if peer in rates else seconds) + ', "versions": {"torch": "2.11.0"}}')
"""
PROGRAMS = {
    "bench/commit": "#!/bin/sh\necho abc123\n",
    "build/apps/stoker/stoker": "#!/bin/sh\necho stoker 0.0\n",
    "build/bench/loader_bench": OURS,
    "bench/data/peers.py": THEIRS,
    "tools/find_torch": "#!/bin/sh\necho site/torch\n",
    "tools/python_packages": "#!/bin/sh\n[ \"$1\" != \"$FAKE_DIES\" ] || exit 1\necho packages-of-$1\n",
    "bin/pkg-config": "#!/bin/sh\nexit ${FAKE_NO_OPENCV:-0}\n",
}
COPIED = ("bench/data/run", "bench/data/compare.py", "bench/data/row.py", "bench/data/folders.py", "bench/data/jpeg.py",
          "bench/data/starved.py", "bench/peers/measure.py",
          *(f"tests/data/broken-images/valid_but_unusual/{name}" for name in ("progressive_test.jpg", "pngsuite_basn2c16.png")))


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in (*PROGRAMS, *COPIED):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            shutil.copy(HOME / name, self.root / name)
        for name, text in PROGRAMS.items():
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        for name in ("imagenet-sample", "cifar10"):
            (self.root / "data" / name).mkdir(parents=True)
        (self.root / "data" / "imagenet-sample" / "1.jpg").write_bytes(b"\xff\xd8\xff\xc0 size \xff\xda pixels")

    def bench(self, *words, quick=True, **variables):
        """Exit code, the columns of the last table by work, and the whole output."""
        environment = os.environ | {"STOKER_DATA": str(self.root / "data"), "PYTHON": sys.executable,
                                    "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"} | variables
        done = subprocess.run([self.root / "bench/data/run", "build", *(["--quick"] if quick else []), *words], env=environment,
                              capture_output=True, text=True)
        table = done.stdout.rpartition("|---|---|---|---|---|---|---|---|\n")[2].splitlines()
        rows = {}
        for line in table:
            work, *columns = [column.strip() for column in line.strip("|").split("|")]
            rows[work.partition(",")[0]] = columns
        return done.returncode, rows, done.stdout + done.stderr

    def test_the_table_has_every_row_with_its_verdict(self):
        code, rows, said = self.bench()
        self.assertEqual(code, 0, said)
        self.assertIn("commit abc123; QUICK", said)
        self.assertIn("Compared with torch 2.11.0.", said)
        self.assertIn("our loader, first epoch: 450 images per CPU-second; ms per image: read 0.100, decode 2.000, augment 0.400", said)
        self.assertRegex(said, r"DataLoader \+ PIL, our threads: 1, their workers: 0; with known rows 5.00 ")
        self.assertEqual(len(rows), len(compare.NAMES), said)
        wanted = {  # ratio, verdict
            "JPEG files against DataLoader + PIL": ("4.50 (4.50 to 4.50)", "met"),
            "JPEG files against DataLoader + tensor operations": ("2.25 (2.25 to 2.25)", "MISSED"),
            "JPEG files against FFCV's JPEG mode (its own file)": ("2.25 (2.25 to 2.25)", "met"),
            "JPEG files against a bare full decode by libjpeg-turbo in our own process": ("1.80 (1.80 to 1.80)", "met"),
            "one 320 x 320 image to 224 x 224 against a plain float twin": ("8.00 (8.00 to 8.00)", "met, stretch too"),
            "CIFAR-10 in RAM": ("8.50 (8.50 to 8.50)", "met"),
            "the same against a bare memcpy gather": ("0.85 (0.85 to 0.85)", "met"),
            "1 % of the JPEG files damaged against none": ("0.99 (0.99 to 0.99)", "met"),
            "table of 48k rows": ("300.00 (300.00 to 300.00)", "met"),
            "first batch from an indexed folder": ("4.00 (4.00 to 4.00)", "met"),
            "opening a folder with its index against scanning it": ("40.00 (40.00 to 40.00)", "met"),
            "anonymous memory beyond the ring": ("-", "MISSED"),
            "epoch boundary beyond a usual batch": ("-", "met, stretch too"),
        }
        if jpeg.AVX512 <= jpeg.cpu_flags():
            wanted |= {
                "random crops to RGB against libjpeg-turbo": ("2.00 (2.00 to 2.00)", "met"),
                "random crops to RGB": ("2.50 (2.50 to 2.50)", "met, stretch too"),
                "without our AVX-512: random crops against libjpeg-turbo": ("1.33 (1.33 to 1.33)", "MISSED"),
                "without our AVX-512: random crops": ("2.50 (2.50 to 2.50)", "met"),
                "decode=fast at 1/4 against our path at full size": ("1.00 (1.00 to 1.00)", "no promise"),
            }
            self.assertRegex(said, r"jpeg, crop, AVX2, 4:2:0 \(3 images per turn\), ms per image: library 1.000; fast .*own 0.750, 1.33x ")
        if len(os.sched_getaffinity(0)) > 1:
            wanted["two loader threads against one"] = ("1.90 (1.90 to 1.90)", "met")
        for work, (ratio, verdict) in wanted.items():
            self.assertEqual((rows[work][2], rows[work][-1]), (ratio, verdict), work)
        for work in ("pinned copies to a GPU against plain memcpy", "CIFAR-10 on the GPU: crop", "ResNet-50 bf16 waiting for data"):
            self.assertEqual(rows[work][0], "-")
            self.assertEqual(rows[work][-1], "SKIPPED: no CUDA")

    def test_the_loaders_statements_are_evaluated_per_turn(self):
        code, rows, said = self.bench("verdict", "forecast", "autotune", quick=False)
        self.assertEqual(code, 1, said)  # a load gave too few turns
        best = "threads it finds by itself against the best fixed: "
        several = len(os.sched_getaffinity(0)) > 1
        wanted = {  # ours, turns, verdict
            "slowed-down stages that it names": ("12 (12 to 12) stages", "2", "met"),
            "samples/s forecast for 2 cores and 8 sleeping threads": ("8 (8 to 8) %", "5", "met") if several else
                                                                     ("-", "-", "SKIPPED: needs 2 cores"),
            best + "images kept decoded": ("0.98 (0.94 to 1.01) of the best", "5", "met by the median, not by the whole interval"),
            best + "JPEG files": ("0.98 (0.96 to 1.01) of the best", "5", "met"),
            best + "reads that sleep 10 ms": ("0.93 (0.9 to 1.01) of the best", "5", "MISSED"),
            best + "a consumer of 30 ms per batch": ("-", "-", "FAILED"),
        }
        self.assertEqual(len(rows), len(wanted))
        for work, (ours, turns, verdict) in wanted.items():
            self.assertEqual((rows[work][0], rows[work][3], rows[work][-1]), (ours, turns, verdict), work)
        self.assertRegex(said, r"FAILED: autotune-consumer: .*2 turns instead of 5")
        self.assertIn("two slowed down: read, and step: data-starved 37 %: read", said)
        self.assertIn("two slowed down at once: right in 4 of 5", said)
        self.assertIn("Medians; the column turns says of how many", said)

    def test_a_stage_that_is_not_named_misses_the_target(self):
        _, rows, said = self.bench("verdict", FAKE_RIGHT="11")
        self.assertEqual(rows["slowed-down stages that it names"][-1], "MISSED", said)

    def test_damage_must_be_found_in_one_folder_only_over_31_turns(self):
        work = "1 % of the JPEG files damaged against none"
        code, rows, said = self.bench("corrupt", quick=False, FAKE_BAD="7")
        self.assertEqual((code, rows[work][2:4]), (0, ["0.99 (0.99 to 0.99)", "31"]), said)
        for words, error in (({"FAKE_BAD": "1"}, "1 bad images in the damaged folder, not 2 to 2"),
                             ({"FAKE_BAD_WHOLE": "1"}, "1 bad images in the whole folder, not 0 to 0")):
            code, rows, said = self.bench("corrupt", **words)
            self.assertEqual((code, rows[work][-1]), (1, "FAILED"))
            self.assertIn(error, said)

    def test_a_missing_part_waits_without_a_figure(self):
        code, rows, said = self.bench("gather", "ram", "far", FAKE_WAITS="1")
        self.assertEqual(code, 0, said)
        self.assertEqual(len(rows), 3)
        self.assertEqual([column for column in rows["CIFAR-10 in RAM"] if column != "-"], [">= 7x", ">= 12x", "waits: nobody wrote it"])

    def test_without_data_or_opencv_rows_print_a_skip_message(self):
        code, rows, said = self.bench("pil", "ram", "table", STOKER_DATA="nowhere")
        self.assertEqual(code, 0, said)
        self.assertIn("SKIPPED: needs imagenet-sample", rows["JPEG files against DataLoader + PIL"][-1])
        self.assertIn("SKIPPED: needs cifar10", rows["CIFAR-10 in RAM"][-1])
        self.assertEqual(rows["table of 48k rows"][-1], "met")
        for words in ({"FAKE_NO_OPENCV": "1"}, {"FAKE_DIES": "bench/data/requirements-ffcv.txt"}):
            code, rows, said = self.bench("ffcv", **words)
            self.assertEqual(code, 0, said)
            self.assertIn("FFCV is left out", said)
            self.assertIn("SKIPPED: FFCV", rows["JPEG files against FFCV's JPEG mode (its own file)"][-1])

    def test_a_side_that_dies_fails_its_rows_and_the_run(self):
        for dead, lost, kept in (("ffcv", "JPEG files against FFCV's JPEG mode (its own file)", "JPEG files against DataLoader + PIL"),
                                 ("table", "table of 48k rows", "first batch from an indexed folder"),
                                 ("resize", "one 320 x 320 image to 224 x 224 against a plain float twin", "table of 48k rows"),
                                 ("resume", "starting at step 1e6 of 1e9 samples (theirs: after 1", "table of 48k rows")):
            code, rows, said = self.bench("pil", "ffcv", "resize", "table", "first", "far", FAKE_DIES=dead)
            self.assertEqual(code, 1, said)
            self.assertEqual(rows[lost][-1], "FAILED")
            self.assertIn("met", rows[kept][-1])
            self.assertRegex(said, "bench/data: FAILED: .* ended with [13]")
            self.assertRegex(said, "alas|peer gone")

    def test_a_side_without_figures_fails_the_run(self):
        code, rows, said = self.bench("far", "table", FAKE_MUTE="far")
        self.assertEqual(code, 1)
        self.assertEqual(rows["table of 48k rows"][-1], "met")
        self.assertRegex(said, "FAILED: far: .*gave no figures")

    def test_an_unknown_row_is_an_error(self):
        code, _, said = self.bench("gif")
        self.assertEqual(code, 2)
        self.assertIn("no row gif; the rows are pil, tensor", said)


class Verdict(unittest.TestCase):
    def test_rates_are_ours_over_theirs_and_times_theirs_over_ours(self):
        rates = Row("r", "work", 2, 3, ours=[4.0] * 7, theirs=[2.0] * 7)
        times = Row("t", "work", 2, 3, times=True, ours=[2.0] * 7, theirs=[4.0] * 7)
        for row in (rates, times):
            self.assertEqual((row.ratios(), row.verdict()), ([2.0] * 7, "met"))

    def test_at_least_must_be_met_at_the_intervals_low_end(self):
        row = Row("r", "work", 2, 3, ours=[1.9, 1.9, 2.5, 2.5, 2.5, 2.5, 2.5], theirs=[1.0] * 7)
        self.assertIn("by the median", row.verdict())
        row.ours = [1.9] * 4 + [9.0] * 3
        self.assertEqual(row.verdict(), "MISSED")
        row.ours = [3.0] * 7
        self.assertEqual(row.verdict(), "met, stretch too")

    def test_at_most_must_be_met_at_its_high_end(self):
        row = Row("r", "work", 1, 0.1, times=True, alone=True, ours=[0.5] * 6 + [1.2])
        self.assertIn("by the median", row.verdict())
        row.ours = [0.5] * 7
        self.assertEqual(row.verdict(), "met")
        row.ours = [1.2] * 4 + [0.5] * 3
        self.assertEqual(row.verdict(), "MISSED")


if __name__ == "__main__":
    unittest.main()
