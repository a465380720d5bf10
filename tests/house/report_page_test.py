# SPDX-License-Identifier: Apache-2.0
"""report.html in a real, headless Chromium: it draws charts in both themes and on a narrow screen, reacts to the mouse,
prints nothing on the console, makes no network requests, and shows hostile names as text."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report_runs
from page_test import BLUE, BLUE_OF_DARK, ORANGE, PageTest, stoker

class ReportCommand(unittest.TestCase):
    def test_output_paths_and_errors(self):
        with tempfile.TemporaryDirectory(prefix="stoker-report-") as root:
            report_runs.running(pathlib.Path(root) / "a")
            report_runs.nothing(pathlib.Path(root) / "b")
            for arguments, page in ((("a",), "a/report.html"), (("a/", "b"), "comparison.html"), (("b", "--out", "c.html"), "c.html")):
                done = stoker("report", *arguments, folder=root)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, page + "\n", ""))
                self.assertIn("</html>", (pathlib.Path(root) / page).read_text())
            for arguments, code, word in ((("a", "missing"), 65, "missing: the run folder does not exist"), ((), 2, "RUN is required"),
                                          (("a", "--out", "no/such/x.html"), 74, "no/such/x.html")):
                done = stoker("report", *arguments, folder=root)
                self.assertEqual((done.returncode, done.stdout), (code, ""))
                self.assertIn(word, done.stderr)


MACHINE = ["gpu0: busy", "gpu0: memory", "gpu0: power", "gpu0: clock", "gpu0: slowed down", "gpu0: temperature", "cores in use", "main memory",
           "bytes read", "share of time in which something waited", "cores by kind of thread", "threads that wait for a core"]


class ReportPage(PageTest):
    def page(self, kind):
        """The page of a run of that kind; created once."""
        if kind not in self.pages:
            folder = getattr(report_runs, kind)(self.root / kind)
            self.pages[kind] = self.report(folder)
        return self.pages[kind]

    def test_image_run(self):
        self.open(self.page("image"))
        drawn = self.drawn()
        self.assertEqual(set(drawn), {"loss", "accuracy", "top5", "macro_f1", "learning rate", "samples per second",
                                      "share of time waiting for data", "memory between steps", *MACHINE})
        for title, pixels in drawn.items():
            self.assertGreater(pixels, 2000, title)
        self.assertGreater(self.pixels("loss", BLUE), 200)    # training
        self.assertGreater(self.pixels("loss", ORANGE), 100)  # validation
        self.assertIn("test accuracy 89.2 %", self.verdict())
        self.assertEqual(self.ask("document.getElementById('state').textContent"), "finished")
        self.assertEqual(self.ask("document.querySelectorAll('.gallery img').length"), 36)
        self.assertEqual(self.ask("[...document.querySelectorAll('.gallery img')].filter(i => i.naturalWidth !== 28).length"), 0)
        self.assertEqual(self.ask("document.querySelectorAll('.confusion td').length"), 100)
        self.assertEqual(self.ask("[...document.querySelectorAll('#plan .changed td:first-child')].map(e => e.textContent).join()"), "precision,threads")
        self.assertIn("AMD EPYC", self.ask("document.getElementById('machine').textContent"))
        self.assertIn("stoker predict", self.ask("document.getElementById('commands').textContent"))
        self.assertIn("↻", self.ask("document.getElementById('timeline').textContent"))
        self.assertTrue(self.fits())

    def test_the_machine_has_one_axis_of_time(self):
        self.open(self.page("image"))
        self.assertEqual(self.ask("[...document.querySelectorAll('#monitor .chart h3')].map(each => each.textContent)"), MACHINE)
        own = "Charts.all.filter(chart => chart.axis === 't')"
        self.assertEqual(self.ask(f"[...new Set({own}.map(chart => chart.graph.xAxisRange()[1].toFixed(3)))].length"), 1)
        # 180 s; the marks of twelve evaluations and three checkpoints.
        self.assertAlmostEqual(self.ask(f"{own}[0].lines[0].t.at(-1)"), 180, delta=1)
        self.assertEqual(self.ask(f"{own}[0].marks.filter(mark => mark.color === '--good').map(mark => mark.t)"), [60, 120, 180])
        self.assertEqual(self.ask(f"{own}[0].marks.filter(mark => mark.color === '--val').length"), 12)
        self.assertIn("evaluation", self.ask("document.querySelector('#monitor .legend').textContent"))
        # The axis of the other charts changes alone, and so does their zoom.
        self.ask("(s => { s.value = 't'; s.dispatchEvent(new Event('change')); s.value = 'x'; s.dispatchEvent(new Event('change')); })(document.getElementById('axis'))")
        self.assertAlmostEqual(self.ask(f"{own}[0].graph.xAxisRange()[1]"), 180, delta=8)  # and a little room
        box = self.ask("(b => [b.left, b.top + scrollY, b.width, b.height])(" + own + "[0].plot.getBoundingClientRect())")
        self.ask(f"scrollTo(0, {box[1] - 200})")
        left, top, width, height = self.ask("(b => [b.left, b.top, b.width, b.height])(" + own + "[0].plot.getBoundingClientRect())")
        self.browser.drag(left + width * 0.4, left + width * 0.7, top + height / 2)
        self.assertEqual(self.ask(f"{own}.filter(chart => chart.graph.xAxisRange()[0] < 10).length"), 0)
        self.assertEqual(self.ask("Charts.all.filter(chart => chart.axis !== 't' && chart.graph.isZoomed('x')).length"), 0)
    def test_anatomy(self):
        self.open(self.page("image"))
        widths = self.ask("Object.fromEntries([...document.querySelectorAll('#anatomy .shares i')].map(i => [i.title.split(':')[0], i.getBoundingClientRect().width]))")
        self.assertEqual(len(widths), 12)
        self.assertAlmostEqual(widths["backward"] / sum(widths.values()), 0.38, delta=0.03)
        self.assertEqual(self.ask("new Set([...document.querySelectorAll('#anatomy .shares i')].map(i => getComputedStyle(i).backgroundColor)).size"), 12)
        rows = self.ask("[...document.querySelectorAll('#anatomy tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        self.assertEqual([row[0] for row in rows[:2]], ["fetch", "forward"])
        self.assertEqual(rows[0][2:], ["2.4 ms", "7.2 ms", "10.0 %"])
        shares = [float(row[1].split()[0]) for row in rows[:12]]
        self.assertAlmostEqual(sum(shares), 100, delta=1)
        self.assertEqual(rows[12][0], "attention (a mark)")
        self.assertEqual([row[3:] for row in rows[13:]], [["fetch", "slow sample cats/a picture.jpg: 1.2 s"], ["evaluation", "evaluation"]])
        self.assertEqual(self.ask("document.querySelectorAll('#anatomy polygon').length"), 12)
        self.open(self.page("text"))
        self.assertTrue(self.ask("document.getElementById('anatomy').hidden"))  # a run of an older version

    def test_ranks(self):
        self.open(self.page("image"))
        rows = self.ask("[...document.querySelectorAll('#ranks tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        self.assertEqual(rows[:3], [["0", "node1", "6.67", "0.333", "1.67", "0.167", "5"], ["1", "node1", "7", "–", "–", "–", "6.67"],
                                    ["2", "node2", "6.67", "7", "0", "0", "0.167"]])
        self.assertEqual([row[0] for row in rows[3:]], ["0", "1"])
        self.assertEqual(rows[3][2:], ["2", "2,000"])  # 4 MB in 2 ms
        self.assertEqual(rows[4][2:], ["–", "–"])
        self.assertIn("10 % of the time in exchanges", self.ask("document.getElementById('ranks').textContent").replace("\u00a0", " "))
        self.open(self.page("text"))
        self.assertTrue(self.ask("document.getElementById('ranks').hidden"))  # one process

    def test_text_run(self):
        self.open(self.page("text"))
        self.assertEqual(self.ask("document.querySelector('#texts h3').textContent"), "Samples at step 500")
        self.assertIn("<b>ho</b>! the night", self.ask("document.querySelector('#texts pre').textContent"))
        self.assertIn("stoker generate", self.ask("document.getElementById('commands').textContent"))
        self.assertGreater(self.drawn()["grad_norm"], 2000)

    def test_crashed_run_marks_values_that_are_not_finite(self):
        self.open(self.page("crashed"))
        self.assertEqual(self.ask("document.getElementById('state').textContent"), "failed")
        self.assertIn("3 steps in a row were not finite", self.verdict())
        self.assertIn("values not finite: 3", self.ask("document.getElementById('marks').textContent"))
        self.assertEqual(self.ask("Charts.all.find(c => c.title === 'loss').lines[0].mean.filter(Number.isNaN).length"), 3)
        self.assertGreater(self.pixels("loss", [0xD1, 0x2F, 0x2F]), 20)  # the marks
        self.assertIn("stoker resume", self.ask("document.getElementById('commands').textContent"))
        self.assertEqual(self.ask("document.querySelectorAll('.gallery').length"), 0)

    def test_running_runs_and_runs_with_few_steps(self):
        self.open(self.page("running"))
        self.assertEqual(self.ask("document.getElementById('state').textContent"), "running")
        self.assertIn("step 277 of 600 (46 %)", self.verdict())
        self.assertGreater(self.drawn()["loss"], 2000)
        self.open(self.page("first_step"))
        self.assertIn("loss", self.titles())
        self.open(self.page("nothing"))
        self.assertEqual(self.titles(), [])
        self.assertEqual(self.ask("document.getElementById('state').textContent"), "lost")
        self.assertIn("No curves", self.ask("document.getElementById('charts').textContent"))

    def test_a_spike_of_one_step_in_twenty_thousand_is_visible(self):
        folder = report_runs.long(self.root / "long", 20_000)
        self.open(self.report(folder))
        seen = self.ask("""(chart => {
          const x = Math.round(chart.graph.toDomXCoord(6666)), y = Math.round(chart.graph.toDomYCoord(1.8));
          return [...chart.plot.querySelectorAll("canvas")].some(canvas => {
            const p = canvas.getContext("2d").getImageData(x - 2, y, 5, 1).data;
            return [0, 4, 8, 12, 16].some(i => p[i] === 0x25 && p[i + 1] === 0x63 && p[i + 2] === 0xEB && p[i + 3] > 200); });
        })(Charts.all.find(chart => chart.title === "loss"))""")
        self.assertTrue(seen)
        self.assertEqual(self.ask("document.querySelectorAll('canvas.heat').length"), 1)  # 200 classes

    def test_themes(self):
        self.open(self.page("image"), theme="dark")
        background = "getComputedStyle(document.body).backgroundColor"
        self.assertEqual(self.ask(background), "rgb(20, 23, 28)")
        self.assertGreater(self.pixels("loss", BLUE_OF_DARK), 200)
        self.ask("document.getElementById('theme').click()")
        self.assertEqual(self.ask(background), "rgb(255, 255, 255)")
        self.assertGreater(self.pixels("loss", BLUE), 200)
        self.assertEqual(self.pixels("loss", BLUE_OF_DARK), 0)

    def test_narrow_screen(self):
        for kind in ("image", "text", "crashed", "ugly"):
            self.open(self.page(kind), width=400)
            self.assertTrue(self.fits(), kind)
            self.assertGreater(min(self.drawn().values()), 500)
            # One chart per row, and none wider than the screen.
            self.assertEqual(self.ask("[...document.querySelectorAll('.plot')].filter(e => e.clientWidth < 300 || e.clientWidth > 400).length"), 0)

    def test_zoom_hover_smoothing_and_axis(self):
        self.open(self.page("image"))
        box = self.ask("(b => [b.left, b.top + scrollY, b.width, b.height])(Charts.all[0].plot.getBoundingClientRect())")
        self.ask(f"scrollTo(0, {box[1] - 200})")
        left, top, width, height = self.ask("(b => [b.left, b.top, b.width, b.height])(Charts.all[0].plot.getBoundingClientRect())")
        self.browser.mouse("mouseMoved", left + width / 2, top + height / 2)
        self.assertRegex(self.ask("Charts.all[0].legend.textContent"), r"train [\d.]+ step \d+")
        self.browser.drag(left + width * 0.3, left + width * 0.6, top + height / 2)
        ranges = self.ask("Charts.all.filter(chart => !chart.axis).map(chart => chart.graph.xAxisRange())")
        self.assertGreater(ranges[0][0], 60)
        self.assertLess(ranges[0][1], 420)
        for each in ranges[1:]:
            self.assertAlmostEqual(each[0], ranges[0][0], delta=1)
        self.assertFalse(self.ask("document.getElementById('unzoom').hidden"))
        self.ask("document.getElementById('unzoom').click()")
        self.assertLess(self.ask("Charts.all[3].graph.xAxisRange()[0]"), 60)
        rough = self.ask("Charts.all[0].graph.numColumns()")
        self.ask("(s => { s.value = 90; s.dispatchEvent(new Event('input')); })(document.getElementById('smoothing'))")
        self.assertEqual(self.ask("Charts.all[0].graph.numColumns()"), rough + 1)  # the unsmoothed line stays, faint
        self.ask("(s => { s.value = 't'; s.dispatchEvent(new Event('change')); })(document.getElementById('axis'))")
        self.assertLess(self.ask("Charts.all[0].graph.xAxisRange()[1]"), 20)  # 600 steps take 14 s
        self.ask("document.getElementById('log').click()")
        self.assertGreater(self.pixels("loss", BLUE), 100)
        self.assertEqual(self.browser.problems, [])

    def test_hostile_names_are_text(self):
        self.open(self.page("ugly"))
        self.assertEqual(self.ask("typeof window.pwned"), "undefined")
        self.assertEqual(self.ask("document.querySelectorAll('img').length"), 0)
        hostile = "</script><img src=x onerror=\"window.pwned=1\">"
        for place in ("subtitle", "plan", "findings", "tables", "matrices", "texts", "anatomy"):
            self.assertIn(hostile, self.ask(f"document.getElementById('{place}').textContent"), place)
        titles = self.titles()
        for name in ("train/größe 損失", "acc/top,1", "genauigkeit für „é“", hostile):
            self.assertIn(name, titles + self.ask("[...document.querySelectorAll('#more summary')].length ? ['x'] : []"))
        self.assertIn(r"\xff\xfe bytes", self.ask("document.getElementById('tables').textContent"))
        self.assertIn("artifacts/half.json", self.ask("document.getElementById('findings').textContent"))
        self.assertNotIn("root:", self.ask("document.body.textContent"))

    def test_several_runs(self):
        folders = [report_runs.image(self.root / "a", lr=0.1), report_runs.image(self.root / "b", seed=2, speed=1.6, lr=0.3), self.page("crashed").parent]
        path = self.report(*folders, "--out", self.root / "compared.html")
        for theme, width in (("light", 1280), ("dark", 400)):
            self.open(path, theme=theme, width=width)
            self.assertTrue(self.fits())
        self.assertEqual(self.ask("document.querySelectorAll('#differences tbody tr').length"), 1)
        self.assertEqual(self.ask("[...document.querySelectorAll('#differences td')].map(e => e.textContent)"), ["lr", "0.1", "0.3", "50"])
        self.assertEqual(self.ask("document.querySelectorAll('#anatomy .shares').length"), 2)  # the third run has none
        self.assertEqual(self.ask("Charts.all[0].lines.length"), 6)  # training and validation of three runs
        before = self.ask("Charts.all[0].graph.numColumns()")
        self.ask("document.querySelector('#runs input').click()")
        self.assertEqual(self.ask("Charts.all[0].graph.numColumns()"), before - 2)

    def test_printing(self):
        self.open(self.page("image"), theme="dark")
        target = self.root / "report.pdf"
        self.browser.paper(target)
        self.assertGreater(target.stat().st_size, 20_000)
        self.assertEqual(self.browser.problems, [])
        self.assertEqual(self.ask("document.documentElement.dataset.theme"), "dark")  # as before


if __name__ == "__main__":
    unittest.main()
