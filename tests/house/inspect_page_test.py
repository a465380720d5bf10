# SPDX-License-Identifier: Apache-2.0
"""stoker inspect from a user's view: its output and files, Ctrl-C, and its page in a headless Chromium, in both themes,
on a narrow screen, with names that contain HTML. STOKER_SCREENSHOTS=FOLDER keeps screenshots of the page."""
import csv
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from page_test import PageTest, stoker
import report_runs

# If these ran as code, the console would show an error.
HOSTILE_CLASS, HOSTILE_FILE = '"><img src=x onerror=nobody()>', "<script>nobody()<!--.png"


def image(number, width=24, height=18):
    """Squares of 3 pixels in random shades, different for each number."""
    draw = random.Random(number)
    shades = [[draw.randrange(256) for _ in range(8)] for _ in range(6)]
    return report_runs.png(width, height, lambda x, y: shades[y // 3][x // 3])


def fill(root, images=12):
    for split, first in (("train", 0), ("val", 1000)):
        for k, name in enumerate(("cat", "dog", HOSTILE_CLASS)):
            folder = root / split / name
            folder.mkdir(parents=True)
            for i in range(images if split == "train" else 3):
                (folder / f"{first + 50 * k + i}.png").write_bytes(image(first + 50 * k + i))
    (root / "val" / "cat" / "leak.png").write_bytes(image(3))  # train/cat/3.png
    (root / "train" / "dog" / HOSTILE_FILE).write_bytes(image(777))
    (root / "val" / "dog" / HOSTILE_FILE).write_bytes(image(777))
    (root / "train" / "dog" / "bad.png").write_bytes(image(7)[:60])
    (root / "train" / "dog" / "text.png").write_bytes(b"</script><script>nobody()</script>")
    with open(os.path.join(os.fsencode(root / "train" / "cat"), b"caf\xe9.png"), "wb") as file:
        file.write(b"latin")


class InspectCommand(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="stoker-inspect-")
        self.addCleanup(self.temporary.cleanup)
        self.root = pathlib.Path(self.temporary.name)

    def test_wrong_arguments_are_refused_before_reading(self):
        (self.root / "empty").mkdir()
        (self.root / "people.csv").write_text("age,pay\n1,2\n")
        fill(self.root / "images", 2)
        for arguments, code, text in ((["empty"], 65, "expected: one folder of images per class"), (["nowhere"], 65, "nowhere"), (["people.csv", "target=pai"], 65, 'did you mean "pay"'), (["people.csv", "batch=3"], 2, "batch is unknown here"), (["images", "target=x"], 2, "applies to tables only"),
                                      (["images", "--html", "missing/x.html"], 74, "create it first"), (["images", "--json", "empty"], 74, "is a folder"),
                                      (["images", "--images", "0"], 2, "--images"), ([], 2, "DATA")):
            done = stoker("inspect", *arguments, folder=self.root)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)
            self.assertFalse((self.root / "inspect.html").exists())

    def test_output_files_can_be_chosen(self):
        fill(self.root / "images", 2)
        done = stoker("inspect", "images", "--html", "", "--json", "x.json", "--images", "5", folder=self.root)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("report:", done.stdout)
        self.assertEqual(json.loads((self.root / "x.json").read_text())["looked"], 5)
        self.assertEqual(sorted(each.name for each in self.root.iterdir()), ["images", "x.json"])
        self.assertEqual(stoker("inspect", "images", folder=self.root).returncode, 0)
        self.assertTrue((self.root / "inspect.html").exists())

    def test_interrupt_keeps_the_results_so_far(self):
        fill(self.root / "images", 2)
        large = report_runs.png(900, 900, lambda x, y: x * y)
        for i in range(400):
            (self.root / "images" / "train" / "cat" / f"large{i}.png").write_bytes(large)
        process = subprocess.Popen([os.environ["STOKER_BIN"] + "/stoker", "inspect", "images", "--threads", "1", "--json", "x.json"], cwd=self.root,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while True:  # the handler is installed when SIGINT is among the caught signals
            caught = next(line for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
            if int(caught.split()[1], 16) & 1 << (signal.SIGINT - 1):
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 75, err)
        self.assertIn("stopping; the results so far follow", err)
        self.assertIn("stopped early", out)
        data = json.loads((self.root / "x.json").read_text())
        self.assertTrue(data["stopped"])
        self.assertLess(data["looked"], data["images"])
        self.assertTrue((self.root / "inspect.html").exists())


class InspectPage(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        fill(cls.root / "pets")
        cls.path, cls.json = cls.root / "inspect.html", cls.root / "x.json"
        cls.done = stoker("inspect", "pets", "--json", "x.json", folder=cls.root)
        cls.data = json.loads(cls.json.read_text()) if cls.json.exists() else None

    def texts(self, selector):
        return self.ask(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def test_page_in_both_themes_and_on_a_narrow_screen(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
        for theme, width in (("light", 1200), ("dark", 1200), ("light", 400), ("dark", 400)):
            self.open(self.path, theme=theme, width=width)
            self.assertTrue(self.fits(), (theme, width))
            self.assertTrue(self.ask("[...document.querySelectorAll('.thumb')].every(e => e.tagName === 'IMG' && e.naturalWidth > 0)"))
            self.assertGreater(self.ask("document.querySelectorAll('.row .thumb').length"), 25)
            self.assertTrue(self.ask("[...document.querySelectorAll('.bars i')].some(e => e.getBoundingClientRect().height > 50)"))
            colour = {"light": "rgb(209, 47, 47)", "dark": "rgb(255, 123, 123)"}[theme]
            self.assertEqual(self.ask("getComputedStyle(document.querySelector('.finding')).borderLeftColor"), colour)
            if folder := os.environ.get("STOKER_SCREENSHOTS"):
                self.browser.image(pathlib.Path(folder, f"inspect-{theme}-{width}.png"))

    def test_page_shows_the_findings(self):
        self.open(self.path)
        shown = self.texts(".finding h3")
        self.assertEqual(len(shown), len(self.data["findings"]))
        for text, finding in zip(shown, self.data["findings"]):
            self.assertEqual(text, finding["grade"] + finding["text"])
            self.assertIn(finding["text"].replace("\n", " "), " ".join(self.done.stdout.split()))
        leak = self.data["findings"][0]
        self.assertEqual((leak["id"], leak["count"], len(leak["groups"])), ("leak", 2, 2))
        self.assertEqual(self.ask("document.querySelectorAll('#finding-leak .strip').length"), 2)
        self.assertEqual(self.ask("document.querySelectorAll('#finding-leak .strip img').length"), 4)
        bad = next(each for each in self.data["findings"] if each["id"] == "bad")
        self.assertEqual(bad["count"], 3)
        self.assertEqual(self.texts("#finding-bad td.file"), [each["file"] for each in bad["images"]])
        self.assertIn("2 things are wrong", self.verdict())

    def test_names_are_shown_as_text(self):
        self.open(self.path)
        self.assertEqual(self.ask("document.querySelectorAll('script').length"), 4)
        self.assertEqual(self.ask("[...document.images].filter(e => !e.src.startsWith('data:')).length"), 0)
        self.assertTrue(any(HOSTILE_FILE in each for each in self.texts("figcaption")))
        self.assertIn(HOSTILE_CLASS, self.texts(".row b"))
        self.assertIn("caf\\xe9.png", self.ask("document.getElementById('finding-bad').textContent"))
        bad = next(each for each in self.data["findings"] if each["id"] == "bad")
        self.assertEqual([each["key"] for each in bad["images"] if "key" in each], ["hex:" + b"cat/caf\xe9.png".hex()])

    def test_many_classes_make_a_page_of_a_few_megabytes(self):
        root = self.root / "many"
        for i in range(300):
            (root / f"class {i:03}").mkdir(parents=True)
            for k in range(3):
                (root / f"class {i:03}" / f"{k}.png").write_bytes(report_runs.png(120, 110, lambda x, y: (x * x * (i + 5) + y * y * (k + 7) + x * y * 31) >> 3))
        done = stoker("inspect", "many", "--html", "many.html", folder=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.open(self.root / "many.html", width=400)
        self.assertTrue(self.fits())
        self.assertEqual(self.ask("document.querySelectorAll('.row').length"), 100)
        self.assertIn("100 of 300 classes", self.ask("document.getElementById('sheet').textContent"))

    def test_a_table_has_a_page(self):
        draw = random.Random(1)
        rows = [(f"{draw.gauss(40, 12):.1f}", draw.choice(("a", "b", HOSTILE_CLASS)), str(i), draw.choice("01")) for i in range(300)]
        with open(self.root / "people.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("age", HOSTILE_FILE, "id", "pay"), *rows])
        done = stoker("inspect", "people.csv", "target=pay", "--html", "people.html", "--json", "people.json", folder=self.root)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        data = json.loads((self.root / "people.json").read_text())
        self.assertEqual([each["id"] for each in data["findings"]], ["row_numbers"])
        for theme, width in (("light", 1200), ("dark", 400)):
            self.open(self.root / "people.html", theme=theme, width=width)
            self.assertTrue(self.fits(), (theme, width))
            self.assertTrue(self.ask("[...document.querySelectorAll('.bars i')].some(e => e.getBoundingClientRect().height > 50)"))
            if folder := os.environ.get("STOKER_SCREENSHOTS"):
                self.browser.image(pathlib.Path(folder, f"inspect-table-{theme}-{width}.png"))
        self.assertEqual(self.texts(".finding h3"), [each["grade"] + each["text"] for each in data["findings"]])
        self.assertEqual(self.texts("#table-columns td:first-child"), ["age", HOSTILE_FILE, "id", "pay"])
        self.assertEqual(self.texts(".plots figcaption"), [each["of"] + f"median {each['median']:g}" for each in data["distributions"]])
        self.assertEqual(self.ask("document.querySelectorAll('script').length"), 4)
        self.assertIn("300", self.ask("document.getElementById('tiles').textContent"))

    def test_a_text_has_a_page(self):
        (self.root / "text").mkdir()
        for i in range(3):
            lines = (f"Line {n} of text {i}, which says nothing twice" for n in range(50 * i, 50 * i + 50))
            (self.root / "text" / f"{i}.txt").write_text("\n".join((*lines, *([HOSTILE_CLASS] if i == 0 else []))) + "\n")
        done = stoker("inspect", "text", "--html", "text.html", folder=self.root)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Nothing wrong in 151 lines", done.stdout)
        for theme, width in (("light", 1200), ("dark", 400)):
            self.open(self.root / "text.html", theme=theme, width=width)
            self.assertTrue(self.fits(), (theme, width))
            if folder := os.environ.get("STOKER_SCREENSHOTS"):
                self.browser.image(pathlib.Path(folder, f"inspect-text-{theme}-{width}.png"))
        self.assertEqual(len(self.texts("#table-files tbody tr")), 3)
        self.assertTrue(self.ask("document.getElementById('findings').hidden"))


if __name__ == "__main__":
    unittest.main()
