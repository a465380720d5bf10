#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings with a planted fault: does `stoker doctor` name it first, and is the gain that it predicts the gain of its cure?

    bench/doctor/cures.py STOKER PHOTOS IMAGES [--repeats N] [--only NAME]

PHOTOS: a folder of photographs in class folders. IMAGES: a set of small images. Each case trains with the fault and with
the option that the doctor gave, in turns; speed is steps per second without the first period, as the doctor counts it.
"""
import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


class Case:
    def __init__(self, name, rule, data, options, busy=0):
        self.name, self.rule, self.data, self.options = name, rule, data, options
        self.busy = busy  # programs that compute beside the training; the cure is their end


def cases(photos, images):
    return [
        Case("checkpoint each 2nd step", "checkpoint_stall", images, "model=mlp save_every=2 steps=600 threads=1 intra_op=1 batch=64"),
        Case("checkpoint each 10th step", "checkpoint_stall", images, "model=mlp save_every=10 steps=1200 threads=1 intra_op=1 batch=64"),
        Case("no loader thread", "input_wait", photos, "model=cnn image_size=64 cache=0 epochs=10 save_every=100000 threads=0 intra_op=1 batch=32"),
        Case("a busy neighbour", "neighbour", images, "model=cnn steps=150 threads=1 intra_op=2 batch=64 precision=fp32", busy=2),
        Case("healthy", None, images, "model=cnn steps=200 threads=1 intra_op=1 batch=64 precision=fp32"),
    ]


@contextlib.contextmanager
def neighbours(count):
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def train(stoker, case, options, run, busy):
    with neighbours(busy):
        done = subprocess.run([stoker, "train", case.data, f"run={run}", *options.split()], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{case.name}: {done.stderr[-800:]}")
    told = subprocess.run([stoker, "doctor", run, "--json"], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


def merged(*texts):
    """Options of which the last one of a key has the say."""
    return " ".join({word.split("=")[0]: word for text in texts for word in text.split()}.values())


def parsed(doc):
    """The arguments; None if the data is not there."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("photos")
    parser.add_argument("images")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if pathlib.Path(arguments.photos).is_dir() and pathlib.Path(arguments.images).is_dir():
        return arguments
    print(f"no data in {arguments.photos} and {arguments.images}: skipped")
    return None


def measure(stoker, case, repeats, folder):
    """The first diagnosis, the cured one, and the ratio of speeds in each turn."""
    first, last, ratios = None, None, []
    for turn in range(repeats):
        speeds = {}
        for side in ("sick", "cured") if turn % 2 == 0 else ("cured", "sick"):
            option = first["findings"][0]["option"] if first and first["findings"] else None
            sick = side == "sick"
            told = train(stoker, case, case.options if sick else merged(case.options, option or ""), f"{folder}/{turn}-{side}", case.busy if sick else 0)
            speeds[side] = told["steps"] / told["seconds"]
            if sick:
                first = first or told
            else:
                last = told
        ratios.append(speeds["cured"] / speeds["sick"])
    return first, last, ratios


def main():
    arguments = parsed(__doc__)
    if arguments is None:
        return 77
    print(f"{'case':28} {'first finding':20} {'right':>5} {'predicted':>22} {'measured, median (range)':>26} {'error':>7} {'inside':>6}  after the cure")
    errors, inside, right, wanted = [], [], 0, 0
    for case in cases(arguments.photos, arguments.images):
        if arguments.only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            first, last, ratios = measure(arguments.stoker, case, arguments.repeats, folder)
        found = first["findings"][0] if first["findings"] else None
        named = found["rule"] if found else None
        wanted += 1
        right += named == case.rule
        middle = statistics.median(ratios)
        spread = f"{middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        after = last["findings"][0]["rule"] if last["findings"] else "healthy"
        if found is None:
            print(f"{case.name:28} {'healthy':20} {'yes' if named == case.rule else 'NO':>5} {'-':>22} {spread:>26} {'-':>7} {'-':>6}  {after}")
            continue
        gain = found["speedup"]
        errors.append(abs(gain["likely"] / middle - 1))
        inside.append(gain["low"] <= middle <= gain["high"])
        told = f"{gain['likely']:.2f} ({gain['low']:.2f}-{gain['high']:.2f})"
        print(f"{case.name:28} {named:20} {'yes' if named == case.rule else 'NO':>5} {told:>22} {spread:>26} {100 * errors[-1]:6.1f}% {'yes' if inside[-1] else 'no':>6}  {after}", flush=True)
    print(f"\nright cause first: {right} of {wanted}; error of the prediction: median {100 * statistics.median(errors):.1f} %, largest {100 * max(errors):.1f} %; measured inside the interval: {sum(inside)} of {len(inside)}")
    return 0 if right == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
