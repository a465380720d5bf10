# SPDX-License-Identifier: Apache-2.0
"""stoker bench tips: its JSON in Python, its page in a headless Chromium, Ctrl-C, and unknown names."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from page_test import PageTest, stoker

QUICK = ("bench", "tips", "--models", "mlp", "--quick", "--intra-op", "1")
WORDS = {"helps", "helps (memory)", "no difference", "hurts here", "not measured"}


class TipsCommand(unittest.TestCase):
    def test_lists_the_benchmarks(self):
        done = stoker("bench")
        self.assertEqual(done.returncode, 0)
        self.assertIn("stoker bench tips", done.stdout)

    def test_unknown_names(self):
        for arguments, hint in ((["tip"], "tips"), (["tips", "--models", "resnet19"], "resnet18"), (["tips", "--tips", "tf31"], "tf32")):
            done = stoker("bench", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'did you mean "{hint}"', done.stderr)

    def test_interrupt_shows_the_results_so_far(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "tips.json")
            process = subprocess.Popen([os.environ["STOKER_BIN"] + "/stoker", "bench", "tips", "--models", "mlp", "--seconds", "600", "--intra-op", "1",
                                        "--json", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for line in process.stderr:  # until the second cell starts
                if line.startswith("2 of"):
                    break
            process.send_signal(signal.SIGINT)
            text, _ = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 75)
            self.assertIn("Stopped early", text)
            cells = [cell for tip in json.loads(path.read_text())["tips"] for cell in tip["cells"]]
            self.assertIn("ratio", cells[0])
            self.assertIn("stopped", cells[-1]["note"])


class TipsPage(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path, cls.json = cls.root / "tips.html", cls.root / "tips.json"
        cls.done = stoker(*QUICK, "--tips", "grads-to-none,autocast-bf16,tf32,anomaly-mode-off,pinned-memory", "--json", cls.json, "--html", cls.path)
        cls.data = json.loads(cls.json.read_text()) if cls.json.exists() else None

    def test_json(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertEqual(self.data["format"], 1)
        self.assertEqual([tip["id"] for tip in self.data["tips"]], ["grads-to-none", "autocast-bf16", "tf32", "anomaly-mode-off", "pinned-memory"])
        self.assertEqual(self.data["tips"][2]["note"], "needs a GPU")
        self.assertEqual(self.data["tips"][4]["note"], "needs a GPU")
        cell = self.data["tips"][0]["cells"][0]
        self.assertEqual(cell["model"], "mlp")
        self.assertIn(cell["word"], WORDS)
        self.assertLessEqual(cell["low"], cell["ratio"])
        self.assertLessEqual(cell["ratio"], cell["high"])
        self.assertEqual(cell["pairs"], 6)
        self.assertGreater(cell["bytes_without"], cell["bytes_with"])  # gradients are kept
        self.assertIn("needs a GPU", self.done.stdout)
        self.assertLessEqual(max(map(len, self.done.stdout.partition("gradients set to none")[2].splitlines())), 100)  # without the machine's name

    def test_page_in_both_themes_and_on_a_narrow_screen(self):
        for theme, width in (("light", 1280), ("dark", 1280), ("light", 400), ("dark", 400)):
            self.open(self.path, theme=theme, width=width)
            self.assertTrue(self.fits(), (theme, width))
            bars = self.ask("[...document.querySelectorAll('.cell .plotted i')].map(e => [e.getBoundingClientRect().width, getComputedStyle(e).backgroundColor])")
            self.assertEqual(len(bars), 3)
            self.assertGreater(self.ask("document.querySelector('#anomaly-mode-off i').getBoundingClientRect().width"), 40)  # a large effect
            colour = {"light": "rgb(21, 138, 74)", "dark": "rgb(88, 201, 138)"}[theme]
            self.assertEqual(self.ask("getComputedStyle(document.querySelector('#anomaly-mode-off i')).backgroundColor"), colour)

    def test_page_has_the_measured_values(self):
        self.open(self.path)
        rows = self.ask("[...document.querySelectorAll('.cell[data-model]')].map(e => e.textContent)")
        cells = [cell for tip in self.data["tips"] for cell in tip["cells"]]
        self.assertEqual(len(rows), len(cells))
        for row, cell in zip(rows, cells):
            self.assertIn(cell["word"], row)
            self.assertIn(f"{cell['ratio']:.{0 if cell['ratio'] >= 100 else 1 if cell['ratio'] >= 10 else 2}f}", row)
        self.assertIn("needs a GPU", self.ask("document.getElementById('tf32').textContent"))
        self.assertIn("of 3 comparisons", self.verdict())
        self.assertEqual(self.ask("document.querySelectorAll('#precision tbody tr').length"), 1)
        self.assertIn(self.data["torch"], self.ask("document.getElementById('machine').textContent"))
        # Whiskers span the interval, on the scale of the bars.
        place = "(r => 50 + 25 * Math.max(-2, Math.min(2, Math.log2(r))))"
        spans = self.ask("[...document.querySelectorAll('.cell .plotted s')].map(e => [parseFloat(e.style.left), parseFloat(e.style.width)])")
        for (left, span), cell in zip(spans, cells):
            self.assertAlmostEqual(left, self.ask(f"{place}({cell['low']})"), delta=0.01)
            self.assertAlmostEqual(left + span, self.ask(f"{place}({cell['high']})"), delta=0.01)

    def test_unknown_values_are_shown_as_unknown(self):
        """The same page without some figures that this machine happens to have."""
        head, mark, rest = self.path.read_text().partition('<script id="data" type="application/json">')
        block, end, tail = rest.partition("</script>")
        data = json.loads(block)
        data.update(load_before=None, load_after=None, memory_bytes=None)
        data["tips"][0]["cells"][0].update(ratio=None, low=None, high=None)
        path = self.root / "unknown.html"
        path.write_text(head + mark + json.dumps(data) + end + tail)
        self.open(path)  # no error on the console
        machine = self.ask("document.getElementById('machine').textContent")
        self.assertIn("unknown before, unknown after", machine)
        self.assertIn("memoryunknown", machine)
        self.assertIn("not measured", self.ask("document.querySelector('#grads-to-none .cell.note').textContent"))
        self.assertEqual(self.ask("document.querySelectorAll('.cell .plotted i').length"), 2)


if __name__ == "__main__":
    unittest.main()
