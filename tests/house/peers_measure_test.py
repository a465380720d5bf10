# SPDX-License-Identifier: Apache-2.0
"""bench/peers/measure.py: the interval against a count over all outcomes, verdicts at and around a promise, whose turn it is,
and what a child's peak memory counts."""
import contextlib
import io
import itertools
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
import measure  # noqa: E402


def row(ours, theirs, promise, figure="theirs / ours"):
    return measure.Row("g", "w", "p", figure, promise, ours, theirs)


class Interval(unittest.TestCase):
    def test_covers_the_median_in_95_of_100_outcomes_and_is_the_narrowest_that_does(self):
        # Each value lies below or above the true median by the toss of a coin: all 2^n outcomes are counted.
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
        self.assertEqual(row([1.0] * 7, [2.0] * 7, 2).verdict(), "holds")
        self.assertEqual(row([1.0] * 7, [1.9] * 7, 2).verdict(), "FALLS SHORT")
        self.assertIn("by its median", row([1.0] * 7, [1.9] + [2.1] * 6, 2).verdict())
        self.assertEqual(row([1.0], [1.0], None).verdict(), "no promise")

    def test_at_most(self):
        self.assertEqual(row([1.0] * 7, [2.0] * 7, 0.5, "ours / theirs").verdict(), "holds")
        self.assertEqual(row([1.1] * 7, [2.0] * 7, 0.5, "ours / theirs").verdict(), "FALLS SHORT")

    def test_the_table_has_what_was_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows"
            with contextlib.redirect_stdout(io.StringIO()):
                measure.tell(row([1.0] * 7, [3.0] * 7, 2), path)
                measure.tell(row([1.0] * 7, [1.0] * 7, 2), path)
            lines = measure.table(path).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("| 3.00 | 3.000 to 3.000 | >= 2 | holds |", lines[2])
        self.assertIn("FALLS SHORT", lines[3])


class Turns(unittest.TestCase):
    def test_the_order_turns_round(self):
        called = []
        with contextlib.redirect_stderr(io.StringIO()):
            found = measure.in_turns({name: lambda name=name: called.append(name) or len(called) for name in "ab"}, 3)
        self.assertEqual("".join(called), "abbaab")
        self.assertEqual(found, {"a": [1, 4, 5], "b": [2, 3, 6]})


class Children(unittest.TestCase):
    def test_peak_memory_is_the_childs_or_not_told(self):
        def child(mebibytes):
            return measure.run_child([sys.executable, "-c", f"x = bytearray(b'x') * ({mebibytes} << 20)"]).resident
        small, large = child(60), child(160)
        self.assertGreater(large - small, 95 << 20)
        self.assertLess(large - small, 110 << 20)
        held = bytearray(b"x") * (200 << 20)  # now the parent is larger than its children
        self.assertIsNone(child(160))
        self.assertEqual(len(held), 200 << 20)

    def test_lines_come_with_their_moments(self):
        child = measure.run_child([sys.executable, "-c", "import time; print('a', flush=True); time.sleep(0.3); print('b')"])
        self.assertEqual([line for _, line in child.lines], ["a", "b"])
        self.assertGreaterEqual(child.lines[1][0] - child.lines[0][0], 0.25)

    def test_a_child_that_fails_is_an_error_with_its_words(self):
        with self.assertRaisesRegex(RuntimeError, "ended with 3(.|\n)*alas"):
            measure.run_child([sys.executable, "-c", "import sys; sys.stderr.write('alas'); sys.exit(3)"])


if __name__ == "__main__":
    unittest.main()
