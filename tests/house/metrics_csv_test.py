# SPDX-License-Identifier: Apache-2.0
"""metrics.csv and metrics.jsonl read with pandas, during the run and after it; the first with the code in
docs/formats.md."""
import math
import pathlib
import tempfile
import unittest

from written_run import WrittenRun
import pandas


class MetricsWithPandas(unittest.TestCase):
    def check(self, run, steps):
        table = pandas.read_csv(run / "metrics.csv")
        losses = table[table.kind == "step"].set_index("step").loss
        self.assertEqual(list(losses.index), list(range(1, steps + 1)))
        self.assertEqual(losses[2], 0.5)
        self.assertTrue(math.isnan(losses[7]))
        self.assertEqual(table["größe, cm"].dropna().count(), steps - 1)
        self.assertEqual(table[table.kind == "step"].data_wait.sum(), steps * 0.125)
        evals = table[table.kind == "eval"].pivot_table(index="step", columns=["split", "metric"], values="value")
        self.assertEqual(list(evals.index), list(range(100, steps + 1, 100)))
        self.assertEqual(evals["val"]["f1/größe"][100], 0.5)
        self.assertEqual(evals["val"]["accuracy"][200], 200 / 1024)

        events = pandas.read_json(run / "metrics.jsonl", lines=True)
        self.assertEqual(list(events[events.event == "step"].step), list(range(1, steps + 1)))
        metrics = events[events.event == "evaluated"].metrics
        self.assertEqual([each["f1/größe"] for each in metrics], [0.5] * (steps // 100))

    def test_during_the_run_and_after_it(self):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder)
            session = WrittenRun(run, 0, 250)
            self.check(run, 250)
            session.end()
            self.check(run, 250)

    def test_after_a_kill(self):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder)
            WrittenRun(run, 0, 250).kill()
            self.check(run, 250)


if __name__ == "__main__":
    unittest.main()
