#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two planted faults at once in a training of Stoker: does `stoker doctor RUN` name the one first whose cure alone gains
more? Where both gain the same within 5 %, either is right.

    bench/doctor/run_pairs.py STOKER PHOTOS IMAGES TEXT [--repeats N] [--only FAULT]

Speeds are steps per second with both faults and with one of them cured, in turns.
"""
import itertools
import statistics
import sys
import tempfile

from cures import COMMON, Case, merged, models, parsed, train

FAULTS = {"anomaly": ("debug_apis_on", "anomaly=on"), "checkpoint": ("checkpoint_stall", "save_every=4"),
          "recompute": ("recompute_unneeded", "recompute=all"), "threads": ("oversubscribed_threads", "threads=8 intra_op=8")}  # fmt: skip
CURES = {"threads": "threads=auto intra_op=auto"}  # as the doctor says it; the others end with their option
LONGER = {"gpt": "time=25s"}  # with two faults a step takes a second
SAME = 1.05


def main():
    arguments = parsed(__doc__)
    if arguments is None:
        return 77
    print(f"{'faults':24} {'model':5} {'first':22} {'second':22} {'cure of the first':>18} {'of the second':>14}  right")
    right = both = wanted = 0
    for (model, (data, own)), pair in itertools.product(models(arguments.images, arguments.text).items(), itertools.combinations(FAULTS, 2)):
        if arguments.only and arguments.only not in pair:
            continue
        with tempfile.TemporaryDirectory() as folder:

            def run(faults, name):
                cures = [CURES.get(each, "") for each in pair if each not in faults]
                options = merged(COMMON, own, LONGER.get(model, ""), *(FAULTS[each][1] for each in faults), *cures)
                return train(arguments.stoker, Case(" and ".join(faults), None, data, options), options, f"{folder}/{name}", busy=0)

            named, gains = None, {fault: [] for fault in pair}
            for turn in range(arguments.repeats):
                whole = run(pair, f"{turn}")
                named = [each["rule"] for each in whole["findings"]] if named is None else named
                for fault in pair:
                    cured = run([each for each in pair if each != fault], f"{turn}-{fault}")
                    gains[fault].append(cured["steps"] / cured["seconds"] * whole["seconds"] / whole["steps"])
        gain = {FAULTS[fault][0]: statistics.median(gains[fault]) for fault in pair}
        most, least = sorted(gain, key=lambda rule: -gain[rule])
        first, second = [*named, "nothing", "-"][:2] if named else ("nothing", "-")
        good = first == most or (first == least and gain[most] <= SAME * gain[least])
        wanted, right, both = wanted + 1, right + good, both + (set(gain) <= set(named))
        told = [f"{gain[each]:.2f}" if each in gain else "-" for each in (first, second)]
        print(f"{', '.join(pair):24} {model:5} {first:22} {second:22} {told[0]:>18} {told[1]:>14}  "
              f"{'yes' if good else f'NO: {most} gains {gain[most]:.2f}, {least} {gain[least]:.2f}'}", flush=True)
    print(f"\nright cause first: {right} of {wanted}; both named: {both} of {wanted}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
