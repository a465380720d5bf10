# SPDX-License-Identifier: Apache-2.0
"""What ranks may do differently: batch norm over the samples of all of them, gradients in bf16. Pictures, since the
buckets of a small network ride in the step's message, and a table's network has no batch norm."""
import json
import pathlib
import tarfile
import unittest

from ranks_test import STOKER, Ranks

SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "data" / "fashion-mnist-6000.tar"
WORDS = ("model=cnn", "batch=64", "steps=2", "val=0", "precision=fp32", "layout=channels_last", "intra_op=1", "threads=0", "ema=0",
         "eval_every=1000", "monitor=off", "device=cpu")


class RankOptions(Ranks):
    def setUp(self):
        super().setUp()
        with tarfile.open(SAMPLE) as tar:
            tar.extractall(self.folder / "pictures", filter="data")

    def train(self, run, *more, code=0):
        keys = [word.split("=")[0] for word in more]
        words = [word for word in WORDS if word.split("=")[0] not in keys]
        return self.run_words([STOKER, "train", "pictures", *words, f"run=./{run}", *more], code)

    def distance(self, one, other):
        """The length of the difference of all weights and statistics."""
        ones, others = self.weights(one), self.weights(other)
        return sum((abs(value - others[name]) ** 2).sum() for name, value in ones.items()) ** 0.5

    def test_batch_norm_of_all_ranks_is_that_of_one_process(self):
        self.train("alone")
        self.train("many", "ranks=2", "sync_bn=on")
        self.train("again", "ranks=2", "sync_bn=on")
        self.train("each", "ranks=2")
        self.assert_same_bytes(self.last_bytes("many"), self.last_bytes("again"))
        # A step multiplies the rounding of the one before; in float64 the test of steps compares with 1e-12.
        self.assertLess(20 * self.distance("alone", "many"), self.distance("alone", "each"))
        refused = self.train("no", "ranks=2", "sync_bn=on", "recompute=all", code=2)
        self.assertIn("sync_bn=on does not work with recompute=", refused.stderr)
        refused = self.train("no", "ranks=2", "sync_bn=on", "norm=group", code=2)
        self.assertIn("sync_bn=on needs batch norms", refused.stderr)

    def test_gradients_in_bf16_are_nearly_the_same(self):
        self.train("before", "ranks=2", "steps=1")
        self.train("whole", "ranks=2")
        self.train("half", "ranks=2", "rank_gradients=bf16")
        self.train("again", "ranks=2", "rank_gradients=bf16")
        self.assert_same_bytes(self.last_bytes("half"), self.last_bytes("again"))
        self.assertLess(20 * self.distance("whole", "half"), self.distance("whole", "before"))
        self.assertGreater(self.distance("whole", "half"), 0)
        row = json.loads((self.folder / "half/plan.json").read_text())["plan"]["rank_gradients"]
        self.assertEqual(row["value"], "bf16")


if __name__ == "__main__":
    unittest.main()
