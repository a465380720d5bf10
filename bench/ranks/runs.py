# SPDX-License-Identifier: Apache-2.0
"""Runs of `stoker train` as the scripts of this folder measure them: the time of their steps, where it went, and the
shapes of their weights. Made data that cost nothing to read. Imports neither torch nor other packages.
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))  # measure.py

# What starters of ranks set: a measured run must not take itself for one of theirs.
STARTER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in STARTER and not name.startswith("STOKER_RANK")}
# No evaluation, checkpoint or log between the steps that are measured; a plan without timed choices.
PLAIN = ("device=cpu", "precision=fp32", "intra_op=1", "threads=0", "ema=0", "monitor=off", "tensorboard=off", "val=0",
         "eval_every=1000000000", "save_every=1000000000", "tail=drop")


class Run:
    """A run that has ended."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        lines = (self.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        self.events = [json.loads(line) for line in lines]

    def step_seconds(self, after):
        """The seconds of each step after the first `after` ones."""
        steps = [(event["step"], event["seconds"]) for event in self.events if event["event"] == "step"]
        if len(steps) != steps[-1][0]:
            raise RuntimeError(f"{self.folder}: {steps[-1][0]} steps, but {len(steps)} of them in metrics.jsonl")
        return [seconds for _, seconds in steps[after:]]

    def whole(self):
        """The anatomy of the whole run."""
        return [event for event in self.events if event["event"] == "anatomy" and event.get("whole")][-1]

    def cpu_seconds(self):
        """CPU seconds of the training thread per step, without checkpoints and evaluations, over the whole run."""
        whole = self.whole()
        return sum(phase["cpu_seconds"] for phase in whole["phases"] if phase["name"] not in ("checkpoint", "evaluation")) / whole["steps"]

    def phases(self):
        """{phase: seconds per step, over the whole run}."""
        whole = self.whole()
        return {phase["name"]: phase["seconds"] / whole["steps"] for phase in whole["phases"]}

    def weights(self):
        """{name: shape} of the saved tensors, from the header of the file (the format's own documentation)."""
        with open(self.folder / "checkpoints/last/weights.safetensors", "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        return {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}


def train(program, data, folder, words, starter=()):
    """`stoker train` to its end. RuntimeError with its error output if it fails. starter: what stands before it."""
    command = [*starter, str(program), "train", str(data), f"run={folder}", "--quiet", *words]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return Run(folder)


def made_table(file, rows, columns=32, classes=10):
    """A table of normally distributed numbers and a class: in memory after the start. With bins=1 each column gives the
    network two inputs."""
    numbers = random.Random(7)
    names = [f"c{number}" for number in range(columns)] + ["y"]
    lines = [",".join(names)]
    for _ in range(rows):
        lines.append(",".join(f"{numbers.gauss(0, 1):.4f}" for _ in range(columns)) + f",k{numbers.randrange(classes)}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
