# SPDX-License-Identifier: Apache-2.0
"""The rows of compare.py about our JPEG path and libjpeg-turbo. Each call of loader_bench measures all sides in turns."""
import statistics

from row import Row

AVX512 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}  # what Highway's AVX3 needs
AVX2_TARGETS = {"jpeg-crop": 1.4, "jpeg-rows": 1.4, "jpeg-full": 1.35}
LIBRARY, OWN, ROWS = "library", "own", "own, known rows"  # loader_bench's names of the ways
# row: what loader_bench calls it, and which of its ways is compared with libjpeg-turbo
PARTS = {"jpeg-crop": ("crop", OWN), "jpeg-rows": ("crop", ROWS), "jpeg-full": ("full", OWN)}
SIDES = {2: 112, 4: 64, 8: 32}  # shrink of decode=fast: a size of crops for which the sample's images often need it


def cpu_flags():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((set(line.split()) for line in file if line.startswith("flags")), set())


def ratio(ms, way, other):
    """How many times as fast as `other`."""
    return statistics.median(theirs / ours for ours, theirs in zip(ms[way], ms[other]))


def tell(name, targets, found):
    """A line per kind of colour sampling."""
    for kind, group in sorted(found.items()):
        ms, spread = group["ms"], group["by_photo"]
        print(f"{name}, {targets}, {kind} ({group['images']} images per turn), ms per image: " + "; ".join(
            f"{way} {statistics.median(values):.3f}" + ("" if way == LIBRARY else
                f", {ratio(ms, way, LIBRARY):.2f}x (by image {spread[way][0]:.2f}, {spread[way][1]:.2f}, {spread[way][2]:.2f})")
            for way, values in ms.items()), flush=True)


def jpeg(bench, rows):
    """Crops and whole images; rows that end in -avx2 in a process whose kernels use nothing better."""
    images, wide = bench.folder("imagenet-sample"), AVX512 <= cpu_flags()
    words = {"turns": bench.pairs, "images": 1 if bench.quick else 4}
    for suffix, more in (("", {}), ("-avx2", {"targets": "avx2"})):
        wanted = {name: part for name, part in PARTS.items() if name + suffix in rows}
        if not wanted:
            continue
        if suffix and not wide:
            for name in wanted:
                rows[name + suffix].missing = "SKIPPED: no AVX-512 here: the rows above are AVX2's"
            continue
        found = bench.ours("jpeg", data=images, **words, **more)
        if suffix and found["targets"] != "AVX2":
            raise RuntimeError(f"kernels use {found['targets']}, not AVX2")
        print(f"jpeg: {found['photos']} files, rows known of {found['known_rows']}; our kernels: {found['targets']}")
        for part in ("crop", "full"):
            tell(f"jpeg, {part}", found["targets"], found[part])
        for name, (part, way) in wanted.items():
            row, ms = rows[name + suffix], found[part]["all"]["ms"]
            row.ours, row.theirs = ms[way], ms[LIBRARY]
            row.note = f"kernels: {found['targets']}"
            if not wide:
                row.target, row.stretch = AVX2_TARGETS[name], None


def shrink(bench, rows):
    """decode=fast against our path at full size, both with the resize."""
    images, words = bench.folder("imagenet-sample"), {"turns": bench.pairs, "images": 1 if bench.quick else 4}
    for name, row in rows.items():
        by = int(name.partition("-")[2])
        found = bench.ours("shrink", data=images, side=SIDES[by], **words)
        tell(f"shrink, crops of {SIDES[by]} px", found["targets"], found["shrink"])
        ms = found["shrink"][str(by)]["ms"]
        row.ours, row.theirs = ms["fast"], ms[OWN]
        row.note = f"to {SIDES[by]} px; with known rows {ratio(ms, 'fast', ROWS):.2f}"


def against_library(name, work, target, stretch=None):
    return Row(name, f"{work} against libjpeg-turbo", target, stretch, "ms", times=True)


GROUPS = (
    (jpeg, [against_library("jpeg-crop", "random crops to RGB", 1.65),
            against_library("jpeg-rows", "random crops to RGB, known rows,", 1.65, 2.1),
            against_library("jpeg-full", "whole images to RGB", 1.6, 2.0),
            *(against_library(f"{name}-avx2", f"without our AVX-512: {work}", AVX2_TARGETS[name]) for name, work in (
                ("jpeg-crop", "random crops"), ("jpeg-rows", "random crops, known rows,"), ("jpeg-full", "whole images")))]),
    (shrink, [Row(f"shrink-{by}", f"decode=fast at 1/{by} against our path at full size, with the resize", None, None, "ms", times=True)
              for by in SIDES]),
)
