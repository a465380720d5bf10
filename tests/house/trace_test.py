#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stoker trace on recorded traces of other people's programs: figures equal to HolisticTraceAnalysis' (hta_figures.json,
made by bench/observe/trace_peers.py --figures), sums that agree, and errors that people understand."""
import functools
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TRACES = pathlib.Path(os.environ.get("STOKER_DATA", ""), "traces")
EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5}


def trace(*arguments):
    return subprocess.run([os.environ["STOKER_BIN"] + "/stoker", "trace", *map(str, arguments)], capture_output=True, text=True)


@functools.cache
def recorded():
    """The JSON of every recorded trace, by file name."""
    found = {}
    for path in sorted(TRACES.glob("*/*.json.gz")):
        done = trace(path, "--json")
        assert done.returncode == 0, (path, done.stderr)
        found[path.name] = json.loads(done.stdout)["traces"][0]
    return found


def whole_and_steps(device):
    yield device["first_to_last_work"], device["idle_first_to_last_work"]
    yield device.get("steps", device["first_to_last_work"]), device["idle"]


@unittest.skipUnless(TRACES.is_dir(), f"needs recorded traces in {TRACES}")
class RecordedTraces(unittest.TestCase):
    def test_are_enough(self):
        self.assertGreater(len(recorded()), 40)

    def test_busy_and_compute_equal_hta(self):
        figures = json.loads((HERE / "hta_figures.json").read_text())["traces"]
        compared = 0
        for name, expected in figures.items():
            if "busy" in expected and name in recorded():
                use = recorded()[name]["devices"][0]["first_to_last_work"]
                self.assertAlmostEqual(100 * use["busy_share"], expected["busy"], delta=1, msg=name)
                self.assertAlmostEqual(100 * use["compute_ms"] / use["total_ms"], expected["compute"], delta=1, msg=name)
                compared += 1
        self.assertGreater(compared, 30)

    def test_critical_path_by_recorded_edges_equals_hta(self):
        figures = json.loads((HERE / "hta_figures.json").read_text())["traces"]
        compared = 0
        for name, expected in figures.items():
            # HTA knows only CUDA's blocking calls, and no runtime calls of MTIA.
            if "path_ms" in expected and name in recorded() and not name.startswith(("mi300_", "mtia_")):
                length = recorded()[name]["critical_path"]["length_by_recorded_edges_ms"]
                self.assertAlmostEqual(length, expected["path_ms"], delta=0.01 * expected["path_ms"], msg=name)
                compared += 1
        self.assertGreater(compared, 25)

    def test_critical_path_is_between_the_longest_stream_and_the_whole(self):
        for name, each in recorded().items():
            if each["critical_path"]:
                self.assertLessEqual(each["critical_path"]["length_ms"], each["whole_ms"] + 1e-6, name)
            if each["critical_path"] and not each["steps"] and each["devices"]:
                longest = max(stream["busy_ms"] for device in each["devices"] for stream in device["streams"])
                self.assertGreaterEqual(each["critical_path"]["length_ms"], longest - 1e-6, name)

    def test_causes_sum_to_idle_time_and_all_to_the_window(self):
        for name, each in recorded().items():
            for device in each["devices"]:
                for use, idle in whole_and_steps(device):
                    self.assertAlmostEqual(sum(cause["ms"] for cause in idle["by_cause"]), use["idle_ms"], places=4, msg=name)
                    self.assertAlmostEqual(use["busy_ms"] + use["idle_ms"], use["total_ms"], places=4, msg=name)

    def test_little_idle_time_has_no_name(self):
        shares = [device["idle"]["unattributed_share"] for each in recorded().values() if any(op["host_ms"] > 0 for op in each["operators"])
                  for device in each["devices"] if device["idle"]["total_ms"] > 0]
        self.assertGreater(len(shares), 30)
        self.assertLessEqual(statistics.median(shares), 0.10)

    def test_loader_workers_made_a_job_faster(self):
        """Known of these two: a batch took 69.3 ms to fetch without workers and 1.4 ms with four (traces/INDEX.md)."""
        before, after = (str(next(TRACES.glob(f"kineto/resnet50_{each}_A*"))) for each in ("nw0", "nw4"))
        done = json.loads(trace(before, after, "--json").stdout)
        fetch = next(row for row in done["idle"] if row["name"] == "batch fetch")
        self.assertEqual(fetch["change"], "faster")
        self.assertAlmostEqual(fetch["before_ms"] - fetch["after_ms"], 57.5, delta=1)
        for side, ranges_ms in (("before", 69.3), ("after", 1.42)):
            fetched = next(row for row in done[side]["ranges"] if row["name"].startswith("enumerate(DataLoader)"))
            self.assertAlmostEqual(fetched["host_ms"] / done[side]["steps"]["count"], ranges_ms, delta=0.5)

    def test_reads_an_archive_of_many_traces(self):
        done = trace(TRACES / "tracelens/unit_kernels_standalone_mi300x.tar.gz", "--json")
        self.assertEqual(len(json.loads(done.stdout)["traces"]), 22)


class Errors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stoker-trace-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, content, name="trace.json"):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def refused(self, path, *words, code=65):
        done = trace(path)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_are_clear(self):
        self.refused(self.written(""), "trace.json", "is empty")
        self.refused(self.written("rank 0\n"), "is not JSON")
        self.refused(self.written('{"version": 1}'), "holds no trace events")
        self.refused(self.written(json.dumps([{**EVENT, "cat": "devtools.timeline", "name": "V8.GCScavenger"}])), "another program")
        self.refused(self.written(b"\x1f\x8b\x08\x00junk", "bad.json.gz"), "bad.json.gz")
        self.refused(self.folder / "absent.json", "absent.json")
        (self.folder / "empty").mkdir()
        self.refused(self.folder / "empty", "holds no traces")

    def test_name_a_place_that_cannot_be_written_before_reading(self):
        done = trace(self.written(json.dumps([EVENT])), "--html", self.folder / "absent" / "page.html")
        self.assertEqual(done.returncode, 74)

    def test_tell_what_is_damaged_and_show_the_rest(self):
        text = json.dumps({"traceEvents": [EVENT, {**EVENT, "ts": 20}, {**EVENT, "ts": 30, "dur": -4}]})
        done = trace(self.written(gzip.compress(text[: text.rindex("]")].encode()), "cut.json.gz"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("note: it ends early", done.stdout)
        self.assertIn("note: events left out because their duration is negative: 1", done.stdout)
        self.assertIn("aten::mm", done.stdout)

    def test_a_file_that_is_no_trace_does_not_hide_the_others(self):
        """A run's profile folder has the record of each profile beside its trace."""
        self.written(json.dumps({"format": "stoker.profile", "steps": []}), "step-50.json")
        self.written("", "rank1.json")
        self.written(json.dumps([EVENT]), "rank0.json")
        done = trace(self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("aten::mm", done.stdout)
        self.assertIn("passed over", done.stderr)
        self.assertIn("rank1.json", done.stderr)
        self.assertIn("step-50.json", done.stderr)
        (self.folder / "rank0.json").unlink()
        self.refused(self.folder, "rank1.json")

    def test_a_missing_rank_is_named(self):
        for rank in (0, 2):
            self.written(json.dumps({"distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": [EVENT]}), f"rank{rank}.json")
        done = trace(self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("traces of 1 rank are missing: 1", done.stdout)
        one, other = self.folder / "rank0.json", self.folder / "rank2.json"
        self.assertIn("ranks", trace(one, other).stdout)
        self.assertIn("before: ", trace(one, other, "--compare").stdout)
        self.assertEqual(trace(one, "--compare").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
