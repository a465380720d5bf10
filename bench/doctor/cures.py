#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings with a planted fault: does `stoker doctor` name it first, and is the gain that it predicts the gain of its cure?

    bench/doctor/cures.py STOKER PHOTOS IMAGES TEXT [--repeats N] [--only NAME]

PHOTOS: a folder of photographs in class folders. IMAGES: a set of small images. TEXT: a text. Each case trains with the
fault and with the option that the doctor gave, in turns (where it found nothing, without the fault); speed is steps per
second without the first period, as the doctor counts it.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


COSTS = 1.05  # a fault whose cure gains less costs nothing in that network, and to find nothing is right
CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")


class Case:
    def __init__(self, name, rule, data, options, without="", busy=0, quota=None):
        self.name, self.rule, self.data, self.options = name, rule, data, options
        self.without = without  # options without the fault
        self.busy = busy  # programs that compute beside the training; the cure is their end
        self.quota = quota  # cores that a control group lends it; the cure is the doctor's option in the same group


# Next to no evaluation: how often there is one depends on the speed.
COMMON = "steps=1000000 time=10s val=0.002 eval_every=1000000 save_every=1000000 precision=fp32 threads=1 intra_op=1"

PHOTOGRAPHS = "image_size=64 cache=0 batch=32"


def models(images, text):
    return {"mlp": (images, "model=mlp batch=64"), "cnn": (images, "model=cnn batch=64"), "gpt": (text, "model=gpt batch=16 sample_tokens=0")}


def cases(photos, images, text):
    """Each fault in each network that can have it."""
    result = []
    for model, (data, own) in models(images, text).items():

        def add(name, rule, fault, data=data, beside="", **others):
            result.append(Case(f"{model}: {name}", rule, data, merged(COMMON, own, beside, fault), merged(COMMON, own, beside), **others))

        add("healthy", None, "")
        add("checkpoint each 2nd step", "checkpoint_stall", "save_every=2")
        if model == "mlp":  # in the others they cost nothing
            add("checkpoint each 10th step", "checkpoint_stall", "save_every=10")
            add("weight histograms", "checkpoint_stall", "tensorboard=histograms save_every=10")  # checkpoints make them
        add("anomaly detection", "debug_apis_on", "anomaly=on")
        add("eight threads", "oversubscribed_threads", "threads=8 intra_op=8")
        add("computed again", "recompute_unneeded", "recompute=all")
        add("a busy neighbour", "neighbour", "", beside="intra_op=2 time=30s", busy=2)
        add("a quota of one core", "cpu_quota", "intra_op=2", quota=1)
        if model != "gpt":  # a text needs no loader
            add("no loader thread", "input_wait", "threads=0", data=photos, beside=PHOTOGRAPHS)
        if model == "cnn":
            add("healthy photographs", None, "", data=photos, beside=PHOTOGRAPHS)
    return result


@contextlib.contextmanager
def neighbours(count):
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


@contextlib.contextmanager
def control_group(cores):
    """What moves a new process into a control group (v1) that lends it so many cores; None: as it is."""
    if cores is None:
        yield None
        return
    folder = CONTROL_GROUPS / "stoker-bench"
    folder.mkdir(exist_ok=True)
    try:
        (folder / "cpu.cfs_quota_us").write_text(str(int(cores * int((folder / "cpu.cfs_period_us").read_text()))))
        yield lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        with contextlib.suppress(OSError):  # a program in it still ends
            folder.rmdir()


def train(stoker, case, options, run, busy):
    with neighbours(busy), control_group(case.quota) as move:
        done = subprocess.run([stoker, "train", case.data, f"run={run}", *options.split()], capture_output=True, text=True, preexec_fn=move)
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
    parser.add_argument("text")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    missing = [each for each in (arguments.photos, arguments.images, arguments.text) if not pathlib.Path(each).exists()]
    if missing:
        print(f"no data in {', '.join(missing)}: skipped")
    return None if missing else arguments


def cured(case, findings):
    """As the doctor says; where it found nothing, without the fault."""
    return merged(case.options, findings[0]["option"] or "") if findings else case.without


def measure(stoker, case, repeats, folder):
    """The first diagnosis, the cured one, and the ratio of speeds in each turn."""
    first, last, ratios = None, None, []
    for turn in range(repeats):
        speeds = {}
        for side in ("sick", "cured") if turn % 2 == 0 else ("cured", "sick"):
            sick = side == "sick"
            options = case.options if sick else cured(case, first["findings"])
            told = train(stoker, case, options, f"{folder}/{turn}-{side}", case.busy if sick else 0)
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
    print(f"{'case':32} {'first finding':20} {'right':>5} {'predicted':>22} {'measured, median (range)':>26} {'error':>7} {'inside':>6}  after the cure")
    errors, inside, right, wanted = [], [], 0, 0
    for case in cases(arguments.photos, arguments.images, arguments.text):
        if arguments.only not in case.name:
            continue
        if case.quota and not os.access(CONTROL_GROUPS, os.W_OK):
            print(f"{case.name}: skipped, no right to make a control group in {CONTROL_GROUPS}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            first, last, ratios = measure(arguments.stoker, case, arguments.repeats, folder)
        found = first["findings"][0] if first["findings"] else None
        named = found["rule"] if found else None
        middle = statistics.median(ratios)
        good = named == case.rule or (named is None and middle < COSTS)
        wanted += 1
        right += good
        spread = f"{middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        after = last["findings"][0]["rule"] if last["findings"] else "healthy"
        if found is None:
            print(f"{case.name:32} {'healthy':20} {'yes' if good else 'NO':>5} {'-':>22} {spread:>26} {'-':>7} {'-':>6}  {after}")
            continue
        gain = found["speedup"]
        errors.append(abs(gain["likely"] / middle - 1))
        inside.append(gain["low"] <= middle <= gain["high"])
        told = f"{gain['likely']:.2f} ({gain['low']:.2f}-{gain['high']:.2f})"
        print(f"{case.name:32} {named:20} {'yes' if good else 'NO':>5} {told:>22} {spread:>26} {100 * errors[-1]:6.1f}% {'yes' if inside[-1] else 'no':>6}  {after}", flush=True)
    print(f"\nright cause first: {right} of {wanted}; error of the prediction: median {100 * statistics.median(errors):.1f} %, largest {100 * max(errors):.1f} %; measured inside the interval: {sum(inside)} of {len(inside)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
