#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of stoker trace in a real, headless Chromium: what is drawn, the keyboard and the mouse on the time line, both
themes, hostile names as text, an empty console and no network requests."""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from page_test import PAINTED, PageTest, stoker

TRACES = pathlib.Path(os.environ.get("STOKER_DATA", ""), "traces")
HOSTILE = "</script><img src=x onerror=alert(1)>&lt;"


def event(category, name, begin, length, thread=1, process=10, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": begin, "dur": length, "args": args}


def made_up(scale=1):
    """Three steps: each fetches for 400 us, computes for 300 and copies for 50."""
    events = []
    for step in range(3):
        at = 1000 * step
        fetch = 400 / scale
        events += [event("user_annotation", f"ProfilerStep#{step}", at, 1000),
                   event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 5, fetch),
                   event("cpu_op", HOSTILE, at + 500, 40, **{"Input Dims": [[32, 3], []]}),
                   event("cuda_runtime", "cudaLaunchKernel", at + 510, 5, correlation=10 * step + 1),
                   event("kernel", "gemm<" + HOSTILE + ">", at + 520, 300, 7, 0, device=0, stream=7, correlation=10 * step + 1),
                   event("cuda_runtime", "cudaMemcpyAsync", at + 900, 5, correlation=10 * step + 2),
                   event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 910, 50, 20, 0, device=0, stream=20, correlation=10 * step + 2, bytes=512),
                   {"ph": "i", "name": "[memory]", "pid": 10, "tid": 1, "ts": at + 505, "args": {"Device Type": 1, "Device Id": 0, "Bytes": 1 << 20}}]
    return {"deviceProperties": [{"id": 0, "name": "Tesla " + HOSTILE}], "traceEvents": events}


class TracePage(PageTest):
    def page(self, name, *arguments):
        path = self.root / name
        done = stoker("trace", *arguments, "--html", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return path

    def written(self, name, trace):
        path = self.root / name
        path.write_text(json.dumps(trace))
        return path

    def texts(self, selector):
        return self.ask(f"[...document.querySelectorAll({json.dumps(selector)})].map(each => each.textContent)")

    def test_shows_where_the_time_went(self):
        self.open(self.page("one.html", self.written("one.json", made_up())))
        self.assertEqual(self.texts("#tiles b")[0], "1 ms")
        self.assertEqual(self.texts("#tiles span")[:2], ["mean step", "device busy"])
        self.assertIn("35 %", self.texts("#tiles b")[1])
        titles = self.texts("h2")
        for title in ("Time line of ProfilerStep#", "Steps", "Kernels and copies", "Operators", "Ranges that the program named", "Critical path", "Memory of device 0"):
            self.assertTrue(any(each.startswith(title) for each in titles), (title, titles))
        self.assertIn("Tesla " + HOSTILE, titles[0])
        causes = self.texts(".stack + .legend")[1]
        self.assertIn("batch fetch 6", causes)
        self.assertEqual(self.ask("document.querySelectorAll('img').length"), 0)
        self.assertGreater(self.ask(PAINTED + "(document.querySelector('.line'))"), 5000)
        self.assertGreater(self.ask(PAINTED + "(document.querySelector('.memory'))"), 5000)

    def test_the_time_line_follows_keyboard_and_mouse(self):
        self.open(self.page("keys.html", self.written("keys.json", made_up())))
        press = "(key => { const c = document.querySelector('.line canvas'); c.focus(); c.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true})); return document.querySelector('.about').textContent; })"
        self.assertIn("batch fetch", self.ask(press + "('n')"))  # the longest gap
        second = self.ask(press + "('n')")
        self.assertIn("idle", second)
        self.assertIn("batch fetch", self.ask(press + "('p')"))
        before = self.ask("document.querySelector('.line canvas').toDataURL()")
        for key in ("+", "+", "ArrowRight", "ArrowLeft", "-", "Home"):
            self.ask(press + f"({json.dumps(key)})")
            after = self.ask("document.querySelector('.line canvas').toDataURL()")
            self.assertTrue(after != before, key)  # not assertNotEqual, which would print the images
            before = after
        left, top = self.ask("(b => [b.left, b.top])((c => { c.scrollIntoView({block: 'center'}); return c.getBoundingClientRect(); })(document.querySelector('.line canvas')))")
        width = self.ask("document.querySelector('.line canvas').clientWidth")
        self.browser.mouse("mouseMoved", left + width * 0.6, top + 22 + 15 + 17 + 9 + 15 + 8)  # the kernel on its stream
        self.assertIn("gemm<" + HOSTILE, self.ask("document.querySelector('.about').textContent"))
        self.browser.drag(left + width * 0.5, left + width * 0.3, top + 30)
        self.assertEqual(self.browser.problems, [])

    def test_both_themes_and_a_narrow_screen(self):
        path = self.page("themes.html", self.written("themes.json", made_up()))
        colours = set()
        for theme in ("light", "dark"):
            self.open(path, theme=theme)
            colours.add(self.ask("getComputedStyle(document.body).backgroundColor"))
            self.assertTrue(self.fits())
        self.assertEqual(len(colours), 2)
        self.open(path, width=390, height=800)
        self.assertTrue(self.fits())

    def test_compares_two_traces(self):
        before, after = self.written("before.json", made_up()), self.written("after.json", made_up(scale=4))
        self.open(self.page("compare.html", before, after))
        rows = self.ask("[...document.querySelector('table').querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        self.assertEqual((rows[0][0], rows[0][-1]), ("batch fetch", "less"))
        self.assertIn("unattributed", [row[0] for row in rows])
        self.assertEqual(self.texts(".stack + .legend")[0].count("compute"), 1)

    def test_shows_each_rank(self):
        folder = self.root / "ranks"
        folder.mkdir()
        for rank in range(2):
            (folder / f"rank{rank}.json").write_text(json.dumps({**made_up(), "distributedInfo": {"rank": rank, "world_size": 3}}))
        self.open(self.page("ranks.html", folder))
        self.assertIn("Traces of ranks 2 are missing", self.texts("#ranks .note")[0])
        self.assertEqual(self.texts("#files button"), ["rank 0", "rank 1"])
        self.ask("document.querySelectorAll('#files button')[1].click()")
        self.assertIn("rank1.json", self.ask("document.getElementById('subtitle').textContent"))

    @unittest.skipUnless(TRACES.is_dir(), f"needs recorded traces in {TRACES}")
    def test_recorded_traces_of_each_kind(self):
        for name in ("kineto/resnet50_nw0_A.1623143089861.pt.trace.json.gz", "hta/cpu_only_rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
                     "hta/mtia_inference_trace_mtia_inference_rank_0.json.gz", "tracelens/mi210_gpu_only_trace_gpu_only_trace.json.gz",
                     "tracelens/h100_facebook_timesformer-base-finetuned-k400__1016002.json.gz"):
            self.open(self.page("recorded.html", TRACES / name))
            self.assertTrue(self.fits(), name)
            self.assertGreater(self.ask(PAINTED + "(document.querySelector('.line'))"), 5000, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
