# SPDX-License-Identifier: Apache-2.0
"""bench/peers/measure.py: the interval against a count over all outcomes, verdicts at and around a promise, the tables,
the order of turns, a child's peak memory, and that a child's output is read while it runs."""
import contextlib
import io
import itertools
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
import measure  # noqa: E402


def row(ours, theirs, promise, figure="theirs / ours", what="w", **more):
    return measure.Row("g", what, "pytorch", figure, promise, ours, theirs, **more)


class Interval(unittest.TestCase):
    def test_covers_the_median_in_95_of_100_outcomes_and_is_the_narrowest_that_does(self):
        # Each value is below or above the true median with probability 1/2: count all 2^n outcomes.
        for n in range(6, 15):
            low, high = measure.median_interval(range(1, n + 1))
            self.assertEqual(low + high, n + 1)

            def covered(k):  # between the k-th smallest and the k-th largest
                return sum(k <= sum(tosses) <= n - k for tosses in itertools.product((0, 1), repeat=n)) / 2 ** n
            self.assertGreaterEqual(covered(low), 0.95, n)
            self.assertLess(covered(low + 1), 0.95, n)

    def test_few_values_give_their_range(self):
        self.assertEqual(measure.median_interval([3, 1, 2]), (1, 3))


class Verdict(unittest.TestCase):
    def test_at_least(self):
        self.assertEqual(row([1.0] * 7, [2.0] * 7, 2).verdict(), "met")
        self.assertEqual(row([1.0] * 7, [1.9] * 7, 2).verdict(), "MISSED")
        self.assertIn("by the median", row([1.0] * 7, [1.9] + [2.1] * 6, 2).verdict())
        self.assertEqual(row([1.0], [1.0], None).verdict(), "no promise")

    def test_at_most(self):
        self.assertEqual(row([1.0] * 7, [2.0] * 7, 0.5, "ours / theirs").verdict(), "met")
        self.assertEqual(row([1.1] * 7, [2.0] * 7, 0.5, "ours / theirs").verdict(), "MISSED")


class Tables(unittest.TestCase):
    def table_of(self, *rows):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows"
            with contextlib.redirect_stdout(io.StringIO()):
                for each in rows:
                    measure.tell(each, path)
            return measure.table(path).splitlines()

    def test_has_the_given_rows(self):
        lines = self.table_of(row([1.0] * 7, [3.0] * 7, 2, what="first", commit="abc"), row([1.0] * 7, [1.0] * 7, 2, commit="abc"))
        self.assertEqual(lines[0], "All of commit abc.")
        self.assertIn("| first | pytorch |", lines[-2])
        self.assertIn("| 3.00 | 3.000 to 3.000 | >= 2 | met |", lines[-2])
        self.assertIn("MISSED", lines[-1])

    def test_work_measured_again_replaces_the_earlier_row(self):
        lines = self.table_of(row([1.0], [3.0], None, note="0 workers"), row([1.0], [5.0], None, what="other"),
                              row([1.0], [4.0], None, note="2 workers"))
        self.assertEqual([line.split(" | ")[5] for line in lines[-2:]], ["4.00", "5.00"])
        self.assertFalse(any("3.00" in line for line in lines))

    def test_names_the_commits_if_they_differ(self):
        lines = self.table_of(*(row([1.0], [1.0], None, what=what, commit=what[0]) for what in ("a1", "a2", "b")))
        self.assertEqual(lines[0], "NOT ONE MEASUREMENT: 2 rows of commit a, 1 rows of commit b")

    def test_the_short_table_has_theirs_over_ours_and_names_missed_promises(self):
        lines = self.table_of(row([0.12345] * 7, [0.2469] * 7, 1.8, short="fast"), row([1.0], [1.0], None, what="not in it"),
                              row([186.7] * 7, [797.1] * 7, 0.6, "ours / theirs", "lean", unit="MiB", short="lean"),
                              row([1234.5] * 7, [1234.5] * 7, 0.5, "ours / theirs", "fat", short="fat"))
        self.assertEqual(lines[2:7], ["| what | Stoker | they | theirs / ours |", "|---|---|---|---|",
                                      "| fast | 0.123 ms | PyTorch 0.247 ms | 2.00 (2.00 to 2.00) |",
                                      "| lean | 187 MiB | PyTorch 797 MiB | 4.27 (4.27 to 4.27) |",
                                      "| fat | 1234 ms | PyTorch 1234 ms | 1.00 (1.00 to 1.00); promised 2 |"])


class Turns(unittest.TestCase):
    def test_the_order_alternates(self):
        called = []
        with contextlib.redirect_stderr(io.StringIO()):
            found = measure.in_turns({name: lambda name=name: called.append(name) or len(called) for name in "ab"}, 3)
        self.assertEqual("".join(called), "abbaab")
        self.assertEqual(found, {"a": [1, 4, 5], "b": [2, 3, 6]})


class Children(unittest.TestCase):
    def test_peak_memory_is_the_childs_or_unknown(self):
        def child(mebibytes):
            return measure.run_child([sys.executable, "-c", f"x = bytearray(b'x') * ({mebibytes} << 20)"]).resident
        small, large = child(60), child(160)
        self.assertGreater(large - small, 95 << 20)
        self.assertLess(large - small, 110 << 20)
        held = bytearray(b"x") * (200 << 20)  # now the parent is larger than its children
        self.assertIsNone(child(160))
        self.assertEqual(len(held), 200 << 20)

    def test_peak_memory_is_unknown_where_the_parent_grew_as_it_started_the_child(self):
        Popen, held = measure.subprocess.Popen, []

        def grow_and_start(*arguments, **options):
            held.append(bytearray(b"x") * (300 << 20))  # past what an earlier test held
            return Popen(*arguments, **options)
        with unittest.mock.patch.object(measure.subprocess, "Popen", grow_and_start):
            self.assertIsNone(measure.run_child([sys.executable, "-c", ""]).resident)

    def test_a_line_gets_its_time_when_it_arrives(self):
        # The child prints "b" only after the clock was read for "a". The clock counts its readings.
        with tempfile.TemporaryDirectory() as folder:
            seen, ticks = pathlib.Path(folder) / "seen", itertools.count()

            def clock():
                tick = next(ticks)
                if tick == 1:
                    seen.touch()
                return tick
            program = ("import os, sys, time; print('a', flush=True)\nfor _ in range(3000):\n  if os.path.exists(sys.argv[1]): break\n"
                       "  time.sleep(0.01)\nelse: sys.exit('nobody read a')\nprint('b')")
            with unittest.mock.patch.object(measure.time, "perf_counter", clock):
                child = measure.run_child([sys.executable, "-c", program, seen])
        self.assertEqual(child.lines, [(1, "a"), (2, "b")])
        self.assertEqual(child.seconds, 3)

    def test_a_child_may_print_long_errors(self):
        child = measure.run_child([sys.executable, "-c", "import sys; sys.stderr.write('x' * 1000000); print('done')"])
        self.assertEqual([line for _, line in child.lines], ["done"])

    def test_a_child_that_fails_is_an_error_with_its_output(self):
        with self.assertRaisesRegex(RuntimeError, "ended with 3(.|\n)*alas"):
            measure.run_child([sys.executable, "-c", "import sys; sys.stderr.write('alas'); sys.exit(3)"])


class Workers(unittest.TestCase):
    ECHO = "for line in open(0): print(line, end='', flush=True)"

    def test_two_work_at_the_same_time(self):
        with measure.Worker([sys.executable, "-c", self.ECHO]) as one, measure.Worker([sys.executable, "-c", self.ECHO]) as other:
            one.begin(steps=1)
            other.begin(steps=2)
            self.assertEqual((other.answer(60), one.answer(60)), ({"steps": 2}, {"steps": 1}))

    def test_one_that_ended_or_is_late_is_an_error_with_its_name(self):
        with measure.Worker([sys.executable, "-c", "raise SystemExit(77)"]) as worker:
            worker.process.wait()
            worker.begin(steps=1)
            with self.assertRaisesRegex(RuntimeError, "SystemExit.*ended with 77"):
                worker.answer(60)
        with measure.Worker([sys.executable, "-c", "import time; time.sleep(600)"]) as worker:
            worker.begin(steps=1)
            with self.assertRaisesRegex(RuntimeError, "did not answer in 0 s"):
                worker.answer(0)
            worker.process.kill()


if __name__ == "__main__":
    unittest.main()
