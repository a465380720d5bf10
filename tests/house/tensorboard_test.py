# SPDX-License-Identifier: Apache-2.0
"""The files of the TensorBoard sink, read by TensorBoard's own reader during the run, and by TensorBoard itself through
the HTTP interface that its page uses."""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from written_run import PACKAGES, WrittenRun, png
from tensorboard.backend.event_processing import event_file_loader, plugin_event_accumulator
from tensorboard.util import tensor_util

GALLERY = {"kind": "gallery", "title": "Most confident mistakes",
           "items": [{"image": "a.png", "caption": "a *cat*", "good": False}, {"image": "b.png", "caption": "größe"}]}
TEXT = {"kind": "text", "title": "Samples at step 300", "text": "ROMEO:\n  <b>O</b>"}


def make_artifacts(run):
    artifacts = run / "artifacts"
    artifacts.mkdir()
    for name, content in {"mistakes": GALLERY, "samples": TEXT}.items():
        (artifacts / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    (artifacts / "a.png").write_bytes(png(8, 5, 10))
    (artifacts / "b.png").write_bytes(png(8, 5, 200))


def series(run):
    """{tag: {step: value}} of all points of the run's scalars, from TensorBoard's reader in Python; a step that occurs
    twice is an error."""
    reader = plugin_event_accumulator.EventAccumulator(str(run / "tensorboard"), size_guidance={"tensors": 0})
    reader.Reload()
    found = {}
    for tag in reader.PluginTagToContent("scalars"):
        points = reader.Tensors(tag)
        found[tag] = {each.step: float(tensor_util.make_ndarray(each.tensor_proto)) for each in points}
        assert len(found[tag]) == len(points), f"{tag}: {[each.step for each in points]}"
    return found


class Reader(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.run_folder = pathlib.Path(self.folder.name)

    def test_reads_scalars_during_the_run(self):
        session = WrittenRun(self.run_folder, 0, 300)
        found = series(self.run_folder)
        session.end()
        self.assertEqual(list(found["train/loss"]), list(range(1, 301)))
        self.assertEqual(found["train/loss"][4], 0.25)
        self.assertTrue(math.isnan(found["train/loss"][7]))
        self.assertEqual(found["train/größe, cm"][4], 0.5)
        self.assertEqual(found["val/f1/größe"], {100: 0.5, 200: 0.5, 300: 0.5})
        self.assertEqual(set(found["speed/samples_per_second"].values()), {128})
        self.assertEqual(set(found["speed/data_wait_share"].values()), {0.25})
        self.assertEqual(set(found["memory/device_bytes"].values()), {2**20})
        self.assertAlmostEqual(found["optimizer/lr"][300], 0.1)

    def test_reads_a_killed_and_resumed_run_as_one(self):
        WrittenRun(self.run_folder, 0, 250, 400).kill()   # its last checkpoint was at step 120
        WrittenRun(self.run_folder, 120, 200, 400).kill()
        found = series(self.run_folder)
        self.assertEqual(list(found["train/loss"]), list(range(1, 201)))  # the first session's steps after 200 are gone
        self.assertEqual(list(found["val/accuracy"]), [100, 200])
        WrittenRun(self.run_folder, 180, 400).end()
        self.assertEqual(list(series(self.run_folder)["train/loss"]), list(range(1, 401)))

    def test_reads_histograms(self):
        WrittenRun(self.run_folder, 0, 300).end()
        reader = plugin_event_accumulator.EventAccumulator(str(self.run_folder / "tensorboard"))
        reader.Reload()
        point = reader.Tensors("weights/größe.weight")[1]
        self.assertEqual(point.step, 200)
        self.assertEqual(tensor_util.make_ndarray(point.tensor_proto).tolist(), [[-1, 0, 5], [0, 1, 7]])
        self.assertEqual(set(reader.PluginTagToContent("histograms")), {"weights/größe.weight", "weights/bias"})

    def test_reads_a_file_with_a_cut_record(self):
        WrittenRun(self.run_folder, 0, 50).kill()
        file, = (self.run_folder / "tensorboard").iterdir()
        whole = len(list(event_file_loader.EventFileLoader(str(file)).Load()))
        file.write_bytes(file.read_bytes()[:-5])
        self.assertEqual(len(list(event_file_loader.EventFileLoader(str(file)).Load())), whole - 1)


class Page(unittest.TestCase):
    """TensorBoard with its default options, including the fast reader."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        run = pathlib.Path(cls.folder.name) / "first"
        run.mkdir()
        make_artifacts(run)
        cls.session = WrittenRun(run, 0, 300)
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", cls.folder.name, "--host", "127.0.0.1",
                   "--port", "0", "--reload_interval", "1"]
        cls.server = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": PACKAGES, "NO_PROXY": "*", "no_proxy": "*"},
                                      stderr=subprocess.PIPE, text=True)
        said = ""
        while not (found := re.search(r"TensorBoard \S+ at (http://127\.0\.0\.1:\d+/)", said)):
            line = cls.server.stderr.readline()
            if not line:
                raise RuntimeError(f"TensorBoard did not start:\n{said}")
            said += line
        cls.url = found[1] + "data/plugin/"
        for _ in range(600):  # TensorBoard reads the folder on another thread
            if cls.get("scalars/tags").get("first/tensorboard"):
                break
            time.sleep(0.1)

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.communicate()
        cls.session.end()
        cls.folder.cleanup()

    @classmethod
    def fetch(cls, path, body=None, **query):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(cls.url + path, body, {"Content-Type": "application/json"})
        with opener.open(request, timeout=60) as answer:
            return answer.read()

    @classmethod
    def get(cls, path, body=None, **query):
        return json.loads(cls.fetch(path, body, **query))

    def of_tag(self, plugin, tag, **query):
        return self.get(plugin, run="first/tensorboard", tag=tag, **query)

    def test_shows_scalars(self):
        tags = self.get("scalars/tags")["first/tensorboard"]
        self.assertLessEqual({"train/loss", "val/accuracy", "val/f1/größe", "optimizer/lr", "speed/samples_per_second",
                              "speed/data_wait_share", "memory/device_bytes"}, set(tags))
        points = self.of_tag("scalars/scalars", "train/loss")
        self.assertEqual([step for _, step, _ in points], list(range(1, 301)))
        self.assertEqual(points[3][2], 0.25)
        self.assertEqual([point[1:] for point in self.of_tag("scalars/scalars", "val/f1/größe")],
                         [[100, 0.5], [200, 0.5], [300, 0.5]])

    def test_shows_images(self):
        tags = self.get("images/tags")["first/tensorboard"]
        self.assertEqual(tags["Most confident mistakes"]["samples"], 2)
        for sample, grey in enumerate((10, 200)):
            image, = self.of_tag("images/images", "Most confident mistakes", sample=sample)
            self.assertEqual(image["step"], 300)
            self.assertEqual(self.fetch("images/individualImage?" + image["query"]), png(8, 5, grey))
        self.assertIn("a", tags)  # a PNG that is itself an artifact

    def test_shows_text(self):
        self.assertLessEqual({"Samples", "Most confident mistakes/captions", "notes/findings", "notes/faults"},
                             set(self.get("text/tags")["first/tensorboard"]))
        text = {tag: self.of_tag("text/text", tag)[-1]["text"]
                for tag in ("Samples", "Most confident mistakes/captions", "notes/findings", "notes/title")}
        self.assertIn("ROMEO:\n  &lt;b&gt;O&lt;/b&gt;", text["Samples"])
        self.assertIn("<li>a *cat* ✗</li>\n<li>größe</li>", text["Most confident mistakes/captions"])
        self.assertIn("the first of &lt;b&gt;two&lt;/b&gt;", text["notes/findings"])
        self.assertIn("the second: one core is busy", text["notes/findings"])
        self.assertIn("a *run* of &lt;nothing", text["notes/title"])

    def test_shows_histograms(self):
        self.assertEqual(set(self.get("histograms/tags")["first/tensorboard"]), {"weights/größe.weight", "weights/bias"})
        points = self.of_tag("histograms/histograms", "weights/größe.weight")
        self.assertEqual([point[1:] for point in points],
                         [[step, [[-1, 0, 5], [0, 1, 7]]] for step in (100, 200, 300)])
        self.assertEqual(self.of_tag("histograms/histograms", "weights/bias")[-1][2], [[2.5, 3.5, 300]])

    def test_shows_hyper_parameters(self):
        experiment = self.get("hparams/experiment", body=b'{"includeMetrics": true}')
        self.assertEqual({each["name"]: each["type"] for each in experiment["hparamInfos"]},
                         {"lr": "DATA_TYPE_FLOAT64", "model": "DATA_TYPE_STRING", "time": "DATA_TYPE_STRING"})
        self.assertEqual([each["name"]["tag"] for each in experiment["metricInfos"]], ["val/accuracy", "val/f1/größe"])
        request = {"includeMetrics": True, "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS"],
                   "colParams": [{"metric": {"tag": "val/accuracy"}}, {"hparam": "lr"}, {"hparam": "model"}],
                   "startIndex": 0, "sliceSize": 10}
        group, = self.get("hparams/session_groups", body=json.dumps(request).encode())["sessionGroups"]
        self.assertEqual(group["hparams"], {"lr": 0.1, "model": "größe", "time": "inf"})
        values = {each["name"]["tag"]: each["value"] for each in group["metricValues"]}
        self.assertEqual(values["val/accuracy"], 300 / 1024)

    def test_then_sees_the_end(self):  # its name makes it run last
        self.session.end()
        for _ in range(300):
            if "notes/outcome" in self.get("text/tags")["first/tensorboard"]:
                break
            time.sleep(0.1)
        self.assertIn("done", self.of_tag("text/text", "notes/outcome")[-1]["text"])


if __name__ == "__main__":
    unittest.main()
