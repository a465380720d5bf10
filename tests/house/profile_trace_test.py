# SPDX-License-Identifier: Apache-2.0
"""The trace of `stoker profile`, read by the readers that people use: TensorBoard's profiler plugin (own and total times
of operators must equal our record) and HolisticTraceAnalysis (its breakdown needs a GPU; here it parses); and against
the Chrome trace format, which Perfetto reads."""
import collections
import gzip
import json
import logging
import os
import pathlib
import subprocess
import tempfile
import unittest

from packages import PACKAGES  # noqa: F401
from torch_tb_profiler.io import Cache
from torch_tb_profiler.profiler import RunLoader

STOKER = os.environ["STOKER_BIN"] + "/stoker"
STEPS = 4


def profiled(folder):
    """(record, path of the trace) of some steps on a made-up table."""
    rows = [f"{i % 37},{'yes' if i % 37 > 20 else 'no'}" for i in range(400)]
    (folder / "rows.csv").write_text("number,large\n" + "\n".join(rows) + "\n")
    (folder / "log").mkdir()
    trace = folder / "log" / "worker.pt.trace.json.gz"
    done = subprocess.run([STOKER, "profile", "rows.csv", "target=large", "batch=32", "precision=fp32", "intra_op=1", "threads=0",
                           "--steps", str(STEPS), "--out", trace, "--json"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), trace


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.disable(logging.WARNING)
        cls.folder = tempfile.TemporaryDirectory()
        cls.record, cls.trace = profiled(pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ours(self):
        """{name: [calls, own microseconds]} of the record."""
        sums = collections.defaultdict(lambda: [0, 0.0])
        for row in self.record["operators"]:
            sums[row["name"]][0] += row["calls"]
            sums[row["name"]][1] += 1e6 * row["host_seconds"]
        return sums

    def test_it_is_json_with_whole_steps(self):
        with gzip.open(self.trace, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        steps = [each for each in events if each.get("name", "").startswith("ProfilerStep#")]
        self.assertEqual(len(steps), STEPS)
        self.assertAlmostEqual(sum(each["dur"] for each in steps) / 1e6, self.record["seconds"], places=5)

    def test_every_event_follows_the_chrome_trace_format(self):
        """What Perfetto and chrome://tracing ask of each kind of event ("Trace Event Format", by phase)."""
        with gzip.open(self.trace, "rt", encoding="utf-8") as file:
            trace = json.load(file)
        self.assertIsInstance(trace["traceEvents"], list)
        self.assertIn(trace.get("displayTimeUnit", "ms"), ("ms", "ns"))
        number, key = (int, float), (int, str)
        kinds = collections.Counter()
        for event in trace["traceEvents"]:
            phase = event["ph"]
            kinds[phase] += 1
            self.assertIn(phase, ("X", "i", "M", "s", "t", "f", "C"), event)
            self.assertIsInstance(event["name"], str, event)
            self.assertIsInstance(event["pid"], key, event)
            self.assertIsInstance(event.get("tid", 0), key, event)
            self.assertIsInstance(event.get("cat", ""), str, event)
            self.assertIsInstance(event.get("args", {}), dict, event)
            self.assertFalse(any(isinstance(each, bool) for each in event.values()), event)
            if phase == "M":
                self.assertIn(event["name"], ("process_name", "process_labels", "process_sort_index", "thread_name",
                                              "thread_sort_index"), event)
                self.assertEqual(len(event["args"]), 1, event)
                continue
            self.assertIsInstance(event["ts"], number, event)
            self.assertGreaterEqual(event["ts"], 0, event)
            if phase == "X":
                self.assertIsInstance(event["dur"], number, event)
                self.assertGreaterEqual(event["dur"], 0, event)
                self.assertIn("tid", event)
            elif phase in "stf":
                self.assertIsInstance(event["id"], key, event)
            elif phase == "i":
                self.assertIn(event.get("s", "t"), ("g", "p", "t"), event)
            elif phase == "C":
                self.assertTrue(event["args"] and all(isinstance(each, number) for each in event["args"].values()), event)
        self.assertGreater(kinds["X"], 10 * STEPS)
        self.assertGreater(kinds["M"], 1)

    def test_tensorboards_profiler(self):
        run = RunLoader("run", str(self.trace.parent), Cache()).load()
        (profile,) = run.profiles.values()
        self.assertEqual({view.display_name for view in run.views} & {"Overview", "Operator", "Trace"},
                         {"Overview", "Operator", "Trace"})
        self.assertEqual(len(profile.overview["steps"]["rows"]), STEPS)
        ours = self.ours()
        compared = 0
        for row in profile.operation_table_by_name["data"]:
            name = row["name"]
            # It counts an operator that calls one of the same name once, and drops the outer one's time.
            self.assertLessEqual(row["calls"], ours[name][0] or row["calls"], name)
            if name.startswith("aten::") and row["calls"] == ours[name][0] and ours[name][1] > 100:
                self.assertAlmostEqual(row["host_self_duration"], ours[name][1], delta=2 + 0.01 * ours[name][1], msg=name)
                compared += 1
        self.assertGreater(compared, 3)

    def test_holistic_trace_analysis(self):
        from hta.common.trace import Trace
        trace = Trace(trace_files={0: str(self.trace)}, trace_dir=str(self.trace.parent))
        trace.parse_traces(use_multiprocessing=False)
        trace.decode_symbol_ids(use_shorten_name=False)
        events = trace.get_trace(0)
        counts = events["s_name"].value_counts()
        for name, (calls, _) in self.ours().items():
            if name.startswith("aten::"):
                self.assertEqual(counts.get(name, 0), calls, name)
        self.assertEqual(sum(counts.get(f"ProfilerStep#{i}", 0) for i in range(1000)), STEPS)


if __name__ == "__main__":
    unittest.main()
