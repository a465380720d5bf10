#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of stoker doctor in a real, headless Chromium: findings, columns, the time line of a trace, evidence that can be
shown alone, hostile names as text."""
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "support"))
from page_test import PageTest, stoker
from trace_page_test import HOSTILE, made_up

RECORDS = HERE.parents[1] / "doctor" / "records"


class DoctorPage(PageTest):
    def page(self, name, path):
        page = self.root / name
        done = stoker("doctor", path, "--html", page, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return page, json.loads(done.stdout)

    def texts(self, selector):
        return self.ask(f"[...document.querySelectorAll({json.dumps(selector)})].map(each => each.textContent)")

    def test_a_script(self):
        page, told = self.page("script.html", RECORDS / "few_workers" / "sick")
        self.open(page)
        first = told["findings"][0]
        self.assertTrue(self.texts("#verdict")[0].startswith(first["claim"]))
        self.assertEqual(self.texts("article code"), [first["option"]])
        self.assertEqual(self.texts("article li"), first["evidence"])
        self.assertEqual(self.texts("#tiles b")[1], str(told["steps"]))
        whole, tall = self.ask("[document.querySelector('.columns').clientHeight, document.querySelector('.columns > div').lastChild.getBoundingClientRect().top - document.querySelector('.columns').getBoundingClientRect().top]")
        self.assertLess(abs(tall), 0.03 * whole, "the parts of a period fill its column")

    def test_evidence_can_be_shown_alone(self):
        page, _ = self.page("alone.html", RECORDS / "few_workers" / "sick")
        self.open(page)
        faded = "document.querySelectorAll('.columns .faded').length"
        self.assertEqual(self.ask(faded), 0)
        self.ask("document.querySelector('article button').click()")
        self.assertGreater(self.ask(faded), 0)
        self.assertEqual(self.ask("[...document.querySelectorAll('.legend button[aria-pressed=true]')].map(each => each.textContent.split(' ')[0])"), ["fetch"])
        self.ask("document.querySelector('article button').click()")
        self.assertEqual(self.ask(faded), 0)

    def test_a_trace_has_its_time_line(self):
        path = self.root / "made_up.json"
        path.write_text(json.dumps(made_up()))
        page, told = self.page("trace.html", path)
        self.open(page)
        self.assertEqual(self.texts("h1 #name"), ["made_up.json"])
        self.assertEqual(told["findings"][0]["rule"], "input_wait")
        picture = "document.querySelector('.line canvas').toDataURL()"
        before = self.ask(picture)
        self.ask("document.querySelector('article button').click()")
        self.assertTrue(self.ask(picture) != before)
        self.assertIn("batch fetch", self.texts(".about")[0])  # the longest gap of the evidence
        self.assertEqual(self.ask("document.querySelectorAll('img').length"), 0)
        self.assertNotIn(HOSTILE, self.ask("document.documentElement.innerHTML"))

    def test_a_healthy_one_says_so(self):
        page, _ = self.page("healthy.html", RECORDS / "few_workers" / "cured")
        self.open(page)
        self.assertIn("Healthy", self.texts("#verdict")[0])
        self.assertEqual(self.texts("article"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
