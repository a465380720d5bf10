# SPDX-License-Identifier: Apache-2.0
"""Shared by the page tests in a headless Chromium: opens the page of a run, checks that the console stays empty and no
network request is made, and counts what is drawn."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import chromium
import own_cache  # noqa: F401

# The number of painted pixels of a chart's canvas: all of them, and those of one colour.
PAINTED = """(plot => [...plot.querySelectorAll("canvas")].reduce((sum, canvas) => {
  if (!canvas.width) return sum;
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 3; i < pixels.length; i += 4) sum += pixels[i] > 0;
  return sum; }, 0))"""
OF_COLOUR = """((plot, [r, g, b]) => [...plot.querySelectorAll("canvas")].reduce((sum, canvas) => {
  if (!canvas.width) return sum;
  const p = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 0; i < p.length; i += 4) sum += p[i + 3] > 200 && Math.abs(p[i] - r) + Math.abs(p[i + 1] - g) + Math.abs(p[i + 2] - b) < 12;
  return sum; }, 0))"""
BLUE, ORANGE, BLUE_OF_DARK = [0x25, 0x63, 0xEB], [0xE8, 0x71, 0x0A], [0x7A, 0xA7, 0xFF]


def stoker(*arguments, folder="."):
    return subprocess.run([os.environ["STOKER_BIN"] + "/stoker", *map(str, arguments)], cwd=folder, capture_output=True, text=True)


@unittest.skipUnless(chromium.find(), chromium.HOW_TO_INSTALL)
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="stoker-report-")
        cls.root = pathlib.Path(cls.temporary.name)
        cls.browser = chromium.Browser(chromium.find())
        cls.pages = {}

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.temporary.cleanup()

    def report(self, *arguments):
        done = stoker("report", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return pathlib.Path(done.stdout.strip())

    def open(self, path, **more):
        self.browser.open(path, **more)
        self.assertEqual(self.browser.problems, [])
        elsewhere = [url for url in self.browser.requests if not url.startswith("data:")]
        self.assertEqual(elsewhere, [path.absolute().as_uri()])
        self.assertLess(path.stat().st_size, 3_000_000)

    def ask(self, expression):
        return self.browser.ask(expression)

    def titles(self):
        return self.ask("[...document.querySelectorAll('.chart h3')].map(each => each.textContent)")

    def drawn(self):
        """Painted pixels of each chart by title."""
        return dict(zip(self.titles(), self.ask(f"[...document.querySelectorAll('.plot')].map({PAINTED})")))

    def pixels(self, title, colour):
        return self.ask(f"{OF_COLOUR}(Charts.all.find(chart => chart.title === '{title}').plot, {colour})")

    def verdict(self):
        return self.ask("document.getElementById('verdict').textContent").replace("\u00a0", " ")

    def fits(self):
        return self.ask("document.documentElement.scrollWidth <= innerWidth")
