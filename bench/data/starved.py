#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a run waits for data, as a share of the time after the first steps. The figures are from its own log.
Photographs are decoded in every epoch.

    starved.py PHOTOGRAPHS [--stoker COMMAND] [--steps N] [KEY=VALUE...]

PHOTOGRAPHS: a folder of class folders; each image is used several times, through links. COMMAND: starts the command
line, default build/release/apps/stoker/stoker. KEY=VALUE: options of `stoker train` that replace or add to
model=resnet50 precision=bf16 batch=128 device=cuda and the others of USUAL. The last line has the figures in JSON.
Exits with 77 without the device. Used by compare.py and, in a bundle, alone.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import measure  # noqa: E402

USUAL = ("model=resnet50", "precision=bf16", "batch=128", "device=cuda", "val=0", "cache=0", "save_every=1000000")
WARM_UP = 20  # steps
SKIPPED = 77  # exit code


def waited(stoker, photographs, folder, steps, words=()):
    """{"percent" of the steps' time spent waiting, "steps", "samples_per_second"}, of one run."""
    batch = next(int(word.partition("=")[2]) for word in (*words, *USUAL) if word.startswith("batch="))
    images = len(list(photographs.glob("*/*")))
    links = max(1, -(-20 * batch // images))  # an epoch of 20 batches
    data = measure.linked_photographs(photographs, folder / "photographs", links)
    given = {word.partition("=")[0] for word in words}
    usual = [word for word in USUAL if word.partition("=")[0] not in given]
    child = measure.run_child([*stoker, "train", data, *usual, *words, f"steps={WARM_UP + steps}", "--json", f"run={folder / 'run'}"])
    events = [json.loads(line) for _, line in child.lines if line.startswith("{")]
    late = [event for event in events if event["event"] == "step"][WARM_UP:]
    seconds = sum(step["seconds"] for step in late)
    return {"percent": 100 * sum(step["data_wait"] for step in late) / seconds, "steps": len(late),
            "samples_per_second": batch * len(late) / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photographs", type=pathlib.Path)
    parser.add_argument("--stoker", default=str(HERE.parents[1] / "build" / "release" / "apps" / "stoker" / "stoker"))
    parser.add_argument("--steps", type=int, default=180)
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_intermixed_args()
    stoker = shlex.split(arguments.stoker)
    if not list(arguments.photographs.glob("*/*")):
        print(f"SKIPPED: no photographs in {arguments.photographs}")
        sys.exit(SKIPPED)
    device = next((word for word in arguments.words if word.startswith("device=")), "device=cuda")
    if device == "device=cuda" and "device cuda" not in subprocess.run([*stoker, "info", "machine"], check=True, capture_output=True,
                                                                text=True).stdout:
        print("SKIPPED: no CUDA")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(waited(stoker, arguments.photographs, pathlib.Path(folder), arguments.steps, arguments.words)))


if __name__ == "__main__":
    main()
