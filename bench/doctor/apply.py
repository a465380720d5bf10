#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`stoker doctor --apply RUN` beside a cure by hand: how much of that speed do the options give that it keeps?

    bench/doctor/apply.py STOKER PHOTOS IMAGES TEXT [--repeats N] [--only NAME]

PHOTOS: a folder of photographs in class folders. IMAGES: a set of small images. TEXT: a text. Each case trains with a
fault, then as the doctor would go on, and as a person who knows the fault would, in turns; speed is steps per second
without the first period. A healthy training must not become slower.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

from cures import Case, merged, parsed, train

ENOUGH, SLOWER = 0.9, 0.98


def cases(photos, images, text):
    """Name, data, options of all, those of the fault, and those of a cure by hand."""
    small = "model=mlp steps=1500 batch=64 precision=fp32"
    cnn = "model=cnn steps=200 batch=64 precision=fp32"
    return [
        ("checkpoint each 2nd step", images, small + " threads=1 intra_op=1", "save_every=2", "save_every=500"),
        ("checkpoint each 10th step", images, small + " threads=1 intra_op=1", "save_every=10", "save_every=500"),
        ("checkpoint each 50th step", images, small + " threads=1 intra_op=1", "save_every=50", "save_every=500"),
        ("no loader thread", photos, "model=cnn image_size=64 cache=0 epochs=10 save_every=100000 intra_op=1 batch=32 precision=fp32",
         "threads=0", "threads=1"),
        ("anomaly detection", images, cnn + " threads=1 intra_op=1 steps=60", "anomaly=on", "anomaly=off"),
        ("eight threads", images, cnn, "threads=8 intra_op=8", "threads=1 intra_op=1"),
        ("weight histograms", images, small + " threads=1 intra_op=1 save_every=10", "tensorboard=histograms", "tensorboard=on save_every=500"),
        ("computed again", images, cnn + " threads=1 intra_op=1", "recompute=all", "recompute=none"),
        ("small passes", text, "model=gpt sample_tokens=0 batch=16 steps=150 precision=fp32 threads=1 intra_op=1", "microbatch=1",
         "microbatch=16"),
        ("healthy", images, cnn, "threads=1 intra_op=1", ""),
    ]  # fmt: skip


def speed(stoker, name, data, options, run):
    told = train(stoker, Case(name, None, data, options), options, run, busy=0)
    return told["steps"] / told["seconds"]


def main():
    arguments = parsed(__doc__)
    if arguments is None:
        return 77
    print(f"{'case':28} {'kept':34} {'of the sick speed: doctor':>26} {'by hand':>20} {'doctor of hand':>15}")
    shares, slower = [], 0
    for name, data, common, sick, hand in cases(arguments.photos, arguments.images, arguments.text):
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder  # for the score of predictions
            speed(arguments.stoker, name, data, merged(common, sick), f"{folder}/first")
            tried = subprocess.run([arguments.stoker, "doctor", f"{folder}/first", "--apply", "--json"], capture_output=True, text=True)
            told = json.loads(tried.stdout)["tried"] if tried.stdout else []
            kept = " ".join(each["option"] for each in told if each["kept"])
            doctor, by_hand = [], []
            for turn in range(arguments.repeats):
                ways = {"sick": merged(common, sick), "doctor": merged(common, sick, kept), "hand": merged(common, sick, hand)}
                order = list(ways) if turn % 2 == 0 else list(ways)[::-1]
                speeds = {way: speed(arguments.stoker, name, data, ways[way], f"{folder}/{turn}-{way}") for way in order}
                doctor.append(speeds["doctor"] / speeds["sick"])
                by_hand.append(speeds["hand"] / speeds["sick"])
        share = statistics.median(mine / theirs for mine, theirs in zip(doctor, by_hand))
        shares.append(share)
        slower += statistics.median(doctor) < SLOWER

        def spread(values):
            return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"

        print(f"{name:28} {kept or '-':34} {spread(doctor):>26} {spread(by_hand):>20} {share:15.2f}", flush=True)
    enough = sum(each >= ENOUGH for each in shares)
    print(f"\n{100 * ENOUGH:.0f} % of the speed by hand or more: {enough} of {len(shares)}; slower than it began by more than 2 %: {slower}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
