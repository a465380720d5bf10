# SPDX-License-Identifier: Apache-2.0
"""The numbers of stoker inspect equal those of Pillow and numpy: on the committed Fashion-MNIST sample, on every kind
of image, and on real photographs if STOKER_DATA has them."""
import io
import json
import os
import pathlib
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import packages  # noqa: F401  the pinned Pillow and numpy, or a skip
import numpy
from PIL import Image, ImageOps

from page_test import stoker

HOUSE = pathlib.Path(__file__).resolve().parents[2]


class Truth:
    """The figures of Pillow and numpy for the files."""

    def __init__(self, files):
        self.sum, self.squares, self.pixels = numpy.zeros(3, object), numpy.zeros(3, object), 0
        self.widths, self.heights, self.formats, self.grey = [], [], {}, True
        for content in files:
            image = Image.open(io.BytesIO(content))
            self.formats[image.format] = self.formats.get(image.format, 0) + 1
            values = numpy.asarray(ImageOps.exif_transpose(image).convert("RGB")).astype(numpy.int64)
            self.heights.append(values.shape[0])
            self.widths.append(values.shape[1])
            self.pixels += values.shape[0] * values.shape[1]
            self.sum += [int(each) for each in values.sum((0, 1))]
            self.squares += [int(each) for each in (values ** 2).sum((0, 1))]
            self.grey = self.grey and bool((values == values[:, :, :1]).all())
        self.channels = 1 if self.grey else 3
        mean = [self.sum[c] / self.pixels for c in range(self.channels)]
        self.mean = [each / 255 for each in mean]
        self.std = [numpy.sqrt(float(self.squares[c] * self.pixels - self.sum[c] ** 2)) / self.pixels / 255 for c in range(self.channels)]


class InspectStatistics(unittest.TestCase):
    def inspect(self, path):
        with tempfile.TemporaryDirectory() as folder:
            done = stoker("inspect", path, "--json", "x.json", "--html", "", folder=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(pathlib.Path(folder, "x.json").read_text())

    def compare(self, data, truth):
        channels = data["channels"]
        self.assertEqual(data["bad"], 0)
        self.assertEqual(channels["pixels"], truth.pixels)
        self.assertEqual(channels["sum"], list(truth.sum[:truth.channels]))
        self.assertEqual(channels["squares"], list(truth.squares[:truth.channels]))
        numpy.testing.assert_allclose(channels["mean"], truth.mean, rtol=1e-12)
        numpy.testing.assert_allclose(channels["std"], truth.std, rtol=1e-12)
        self.assertEqual(data["formats"], truth.formats)
        for name, values in (("width", truth.widths), ("height", truth.heights), ("aspect", [w / h for w, h in zip(truth.widths, truth.heights)])):
            of = data[name]
            expected = [min(values), *numpy.quantile(values, [0.05, 0.5, 0.95], method="nearest"), max(values)]
            got = [of[each] for each in ("least", "low", "median", "high", "most")]
            numpy.testing.assert_allclose([got[0], got[4]], [expected[0], expected[4]])
            ordered = sorted(values)
            for share, value in zip((0.05, 0.5, 0.95), got[1:4]):  # either of the two nearest values is correct
                at = share * (len(values) - 1)
                self.assertTrue(ordered[int(numpy.floor(at))] <= value <= ordered[int(numpy.ceil(at))], (name, share))
            self.assertEqual(sum(each["count"] for each in of["bins"]), len(values))
            for each in of["bins"]:
                inside = [value for value in values if each["from"] - 1e-9 <= value <= each["to"] + 1e-9]
                self.assertLessEqual(each["count"], len(inside))

    def test_the_committed_sample(self):
        path = HOUSE / "examples" / "data" / "fashion-mnist-6000.tar"
        with tarfile.open(path) as tar:
            members = [each for each in tar.getmembers() if each.isfile() and each.name.endswith(".png")]
            truth = Truth(tar.extractfile(each).read() for each in members)
        data = self.inspect(path)
        self.assertEqual(data["images"], len(members))
        self.assertEqual(len(data["channels"]["mean"]), 1)
        self.compare(data, truth)

    def test_images_of_every_kind(self):
        random = numpy.random.default_rng(5)
        with tempfile.TemporaryDirectory() as folder:
            kinds = [("L", "PNG"), ("LA", "PNG"), ("RGB", "PNG"), ("RGBA", "PNG"), ("P", "PNG"), ("L", "JPEG"), ("RGB", "JPEG"), ("CMYK", "JPEG")]
            exif = Image.Exif()
            exif[0x0112] = 6
            files = []
            for number, (mode, kind) in enumerate(kinds):
                for turned in (False, True):
                    image = Image.fromarray(random.integers(0, 256, (20 + 7 * number, 33, 3), numpy.uint8)).convert(mode)
                    path = pathlib.Path(folder, "ab"[number % 2], f"{mode}{kind}{turned}." + kind.lower())
                    path.parent.mkdir(exist_ok=True)
                    image.save(path, kind, **({"exif": exif} if turned else {}), **({"quality": 90} if kind == "JPEG" else {}))
                    files.append(path.read_bytes())
            data = self.inspect(folder)
            truth = Truth(files)
            self.compare(data, truth)
            self.assertEqual(data["modes"], {"grey": 4, "grey + alpha": 2, "colour": 6, "colour + alpha": 2, "CMYK": 2})
            self.assertEqual(data["orientations"], {"1": 8, "6": 8})
            counts = {each["id"]: each["count"] for each in data["findings"]}
            self.assertEqual({key: counts.get(key) for key in ("grey", "alpha", "cmyk", "turned")}, {"grey": 6, "alpha": 4, "cmyk": 2, "turned": 8})

    def test_photographs(self):
        path = pathlib.Path(os.environ.get("STOKER_DATA", ""), "imagenet-sample")
        if not path.is_dir():
            self.skipTest("no imagenet-sample in STOKER_DATA")
        files = sorted(each for each in path.rglob("*") if each.suffix.lower() in (".jpg", ".jpeg"))
        truth = Truth(each.read_bytes() for each in files)
        data = self.inspect(path)
        self.assertEqual(data["images"], len(files))
        self.compare(data, truth)


if __name__ == "__main__":
    unittest.main()
