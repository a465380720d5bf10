# SPDX-License-Identifier: Apache-2.0
"""The reports of real runs of every kind, and of a killed run, in a headless Chromium, in both themes and on a narrow
screen. STOKER_SCREENSHOTS=FOLDER keeps screenshots."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

HOUSE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOUSE / "tests" / "support"))
from page_test import BLUE, ORANGE, PageTest, stoker
import report_runs

QUICK = ("precision=fp32", "threads=0", "intra_op=1", "--quiet")


def images(root):
    for name, slope in (("flat", 0), ("steep", 8)):
        for i in range(20):
            path = root / "images" / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(report_runs.png(16, 16, lambda x, y: 60 + slope * x + (x * y * (i + 3)) % 40))
    return "images", "model=cnn", "epochs=4", "batch=8"


def text(root):
    lines = "".join(each.read_text(encoding="utf-8") for each in sorted((HOUSE / "docs").glob("*.md")))
    (root / "pages.txt").write_text(lines[:40000], encoding="utf-8")
    return "pages.txt", "steps=60", "eval_every=20", "layers=1", "width=32", "sample_tokens=60", "lr=0.01"


def table(root):
    rows = [f"{i % 37},{'even' if i % 2 == 0 else 'odd'},{'yes' if i % 37 + 9 * (i % 2) > 22 else 'no'}" for i in range(300)]
    (root / "rows.csv").write_text("number,parity,large\n" + "\n".join(rows) + "\n")
    return "rows.csv", "target=large", "epochs=6", "hidden=16", "batch=32"


class RealRuns(PageTest):
    def trained(self, make, *more):
        data, *options = make(self.root)
        run = f"runs/{make.__name__}"
        done = stoker("train", data, f"run={run}", *options, *QUICK, *more, folder=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.root / run

    def look(self, page):
        """Both themes and a narrow screen: curves are drawn in all of them, and nothing overflows."""
        for name, width, theme in (("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 400, "light")):
            self.open(page, width=width, theme=theme)
            self.ask("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            for title, pixels in self.drawn().items():
                self.assertGreater(pixels, 1000, f"{name}: {title}")
            self.assertTrue(self.fits(), name)
            if folder := os.environ.get("STOKER_SCREENSHOTS"):
                self.browser.image(pathlib.Path(folder, f"{page.parent.name}-{name}.png"))
        self.open(page)

    def explained(self):
        """The finished run says where its time went: the shares of its phases are all of it."""
        rows = self.ask("[...document.querySelectorAll('#anatomy tbody tr')].filter(row => row.cells.length > 3).map(row => [row.cells[0].textContent, row.cells[1].textContent])")
        shares = {name: float(share.split()[0]) for name, share in rows if share.endswith("%")}
        self.assertAlmostEqual(sum(shares.values()), 100, delta=1)
        self.assertLessEqual({"fetch", "forward", "backward", "optimizer", "evaluation", "checkpoint"}, set(shares))

    def test_images(self):
        self.look(self.trained(images) / "report.html")
        self.assertIn("accuracy", self.titles())
        self.explained()
        self.assertGreater(self.pixels("loss", BLUE), 100)
        self.assertGreater(self.pixels("loss", ORANGE), 10)
        self.assertGreater(self.ask("document.querySelectorAll('.gallery img').length"), 3)
        self.assertEqual(self.ask("document.querySelectorAll('.confusion td').length"), 4)

    def test_text(self):
        run = self.trained(text)
        self.look(run / "report.html")
        self.assertIn("perplexity", self.titles())
        self.explained()
        self.assertEqual(self.ask("document.querySelector('#texts h3').textContent"), "Samples at step 60")
        self.assertEqual(self.ask("document.querySelectorAll('#texts details').length"), 2)  # those of steps 40 and 20
        self.assertGreater(len(self.ask("document.querySelector('#texts pre').textContent")), 50)
        self.assertIn("stoker generate", self.ask("document.getElementById('commands').textContent"))
        self.assertIn("eval_every", self.ask("document.getElementById('plan').textContent"))

    def test_table(self):
        self.look(self.trained(table) / "report.html")
        self.assertIn("auc", self.titles())
        self.explained()
        self.assertEqual(self.ask("document.getElementById('state').textContent"), "finished")
        self.assertEqual(self.ask("document.querySelectorAll('.confusion td').length"), 4)

    def test_a_killed_run(self):
        data, *options = text(self.root)
        options.remove("steps=60")
        words = ["train", data, "run=runs/killed", *options, "steps=100000", "save_every=20", *QUICK]
        run = subprocess.Popen([os.environ["STOKER_BIN"] + "/stoker", *words], cwd=self.root, stdout=subprocess.DEVNULL)
        try:
            saved, end = self.root / "runs" / "killed" / "checkpoints" / "last" / "manifest.json", time.monotonic() + 120
            while not saved.exists():
                self.assertTrue(run.poll() is None and time.monotonic() < end)
                time.sleep(0.1)
        finally:
            run.send_signal(signal.SIGKILL)
            run.wait()
        an_hour_ago = time.time() - 3600
        for file in (self.root / "runs" / "killed").iterdir():  # with recent files the run would count as running
            os.utime(file, (an_hour_ago, an_hour_ago))
        page = self.report(self.root / "runs" / "killed")
        self.look(page)
        self.assertEqual(self.ask("document.getElementById('state').textContent"), "lost")
        self.assertIn("of 100,000", self.verdict())
        self.assertIn("stoker resume", self.ask("document.getElementById('commands').textContent"))


if __name__ == "__main__":
    unittest.main()
