#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step on a GPU against Python PyTorch: eager, torch.compile, and torch.compile with CUDA graphs.

    gpu.py MODEL [--worker COMMAND] [--device cuda|cpu] [--batch N] [--size N] [--precision bf16] [--turns N] [--seconds S]

COMMAND starts step_worker (default build/release/bench/step_worker). All sides start at the same time, then take turns
on equal batches. A side that fails or is not ready in time (--patience) prints a skip message: torch.compile needs a C
compiler. Exits with 77 without the device. Does not import torch: see measure.py.
"""
import argparse
import contextlib
import pathlib
import shlex
import statistics
import sys
import tempfile
import time

import measure

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("pytorch-fused", "compile", "reduce-overhead")
# Batch and size: all five sides are on the device at the same time.
USUAL = {"resnet50": (64, 224), "gpt2": (4, 1024), "cnn": (128, 32), "gpt": (12, 64)}
SKIPPED = 77


def last_line(file):
    file.seek(0)
    lines = [line.strip() for line in file if line.strip()]
    return lines[-1] if lines else "no output"


def started(ends, arguments, case):
    """{side: (worker, file with its standard error)}"""
    ours = shlex.split(arguments.worker)
    commands = {side: [*ours, side, *case] for side in ("stoker", "bare")}
    commands |= {side: [sys.executable, HERE / "step_peer.py", side + (f":{arguments.backend}" if arguments.backend and side != PEERS[0]
                                                                         else ""), *case] for side in PEERS}
    workers = {}
    for side, command in commands.items():
        said = ends.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
        workers[side] = ends.enter_context(measure.Worker(command, said=said)), said
    return workers


def ready(workers, steps, patience):
    """The workers that took their first steps; the others are killed, with a message that gives the reason."""
    deadline = time.monotonic() + patience
    for worker, _ in workers.values():
        worker.begin(steps=steps)
    found = {}
    for side, (worker, said) in workers.items():
        try:
            worker.answer(max(0.1, deadline - time.monotonic()))
            found[side] = worker
        except RuntimeError as error:
            worker.process.kill()
            print(f"SKIPPED: {side}: {error}: {last_line(said)}", flush=True)
    return found


def compare(arguments, case):
    with contextlib.ExitStack() as ends:
        sides = ready(started(ends, arguments, case), 5, arguments.patience)
        if "stoker" not in sides:
            return SKIPPED if not sides else 1
        probe = sides["stoker"].ask(steps=5)["wall"]
        steps = max(3, round(1000 * arguments.seconds / probe))
        found = measure.in_turns({side: lambda worker=worker: worker.ask(steps=steps)["wall"] for side, worker in sides.items()},
                                 arguments.turns, arguments.model)
        what = f"step of {arguments.model}, batch {case[1]}, size {case[2]}, {case[3]}, {arguments.device}"
        for side in [each for each in found if each != "stoker"]:
            print(measure.Row("gpu", what, side, "theirs / ours", None, found["stoker"], found[side]).text(), flush=True)
        rate = 1000 * int(case[1]) / statistics.median(found["stoker"])
        print(f"{what}: Stoker takes {measure.quantity(found['stoker'], 'ms')}, {rate:.0f} samples/s", flush=True)
        peaks = {side: sides[side].ask(bytes=True)["bytes"] / 2 ** 20 for side in ("stoker", "pytorch-fused") if side in sides}
        print(f"{what}: peak tensor memory, MiB: " + ", ".join(f"{side} {value:.0f}" for side, value in peaks.items()))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=USUAL)
    parser.add_argument("--worker", default=str(HERE.parents[1] / "build" / "release" / "bench" / "step_worker"))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--batch", type=int)
    parser.add_argument("--size", type=int)
    parser.add_argument("--precision", default="bf16", choices=("fp32", "bf16"))
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.7, help="length of a turn")
    parser.add_argument("--patience", type=float, default=75, help="seconds until a side must have taken its first steps")
    parser.add_argument("--backend", help="backend of torch.compile, default inductor, which needs a compiler; eager needs none")
    arguments = parser.parse_args()
    batch, size = USUAL[arguments.model]
    case = (arguments.model, arguments.batch or batch, arguments.size or size, arguments.precision, 1, arguments.device)
    sys.exit(compare(arguments, case))


if __name__ == "__main__":
    main()
