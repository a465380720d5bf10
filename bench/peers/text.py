#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stoker's language-model task against the same network and settings in Python PyTorch, on tinyshakespeare.
The settings are nanoGPT's for a CPU (4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, no dropout).

    bench/peers/text.py STOKER TEXT [--seeds 3] [--steps 2000] [--threads N]

STOKER: the command line's binary. TEXT: tinyshakespeare's input.txt. Needs torch on PYTHONPATH (as `make bench-peers`
sets it). The two take turns, seed by seed, on the same number of threads. Both validate over the whole last tenth in
windows that do not overlap. Prints one line per system and seed, then means, and the median of the paired ratios of
training time.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile
import time

import torch
from torch import nn

import networks

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 4, 4, 128, 64, 12


def pytorch(text, seed, steps):
    """nanoGPT's loop: windows drawn at random, AdamW, clipping, cosine with warm-up."""
    torch.manual_seed(seed)
    characters = sorted(set(text))
    ids = torch.tensor([characters.index(each) for each in text])
    cut = len(ids) - int(0.1 * len(ids))
    train, held_out = ids[:cut], ids[cut:]
    model = networks.Gpt(len(characters), CONTEXT, LAYERS, HEADS, WIDTH)
    optimizer = torch.optim.AdamW(networks.decay_groups(model, 0.1), lr=1e-3, betas=(0.9, 0.99), fused=True)
    begin, warm = time.perf_counter(), min(100, steps - 1)
    for step in range(steps):
        share = max(0.0, (step - warm) / (steps - warm))
        lr = 1e-3 * (step + 1) / warm if step < warm else 1e-4 + 0.5 * (1 + math.cos(math.pi * share)) * 9e-4
        for group in optimizer.param_groups:
            group["lr"] = lr
        starts = torch.randint(len(train) - CONTEXT, (BATCH,))
        windows = torch.stack([train[start:start + CONTEXT + 1] for start in starts])
        loss = model.loss(windows[:, :-1], windows[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    seconds = time.perf_counter() - begin
    whole = (len(held_out) - 1) // CONTEXT * CONTEXT
    with torch.no_grad():
        seen, wanted = held_out[:whole].view(-1, CONTEXT), held_out[1:whole + 1].view(-1, CONTEXT)
        nats = sum(model.loss(a, b, "sum").item() for a, b in zip(seen.split(64), wanted.split(64)))
        if whole < len(held_out) - 1:
            nats += model.loss(held_out[whole:-1].unsqueeze(0), held_out[whole + 1:].unsqueeze(0), "sum").item()
    return nats / (len(held_out) - 1), seconds


def stoker(program, text, work, seed, steps, threads):
    run = work / f"seed{seed}"
    words = [f"steps={steps}", f"seed={seed}", "device=cpu", "model=gpt", "tokenizer=characters", f"context={CONTEXT}",
             f"layers={LAYERS}", f"heads={HEADS}", f"width={WIDTH}", "dropout=0", f"batch={BATCH}", "lr=1e-3", "warmup=100", "threads=0", f"intra_op={threads}", "precision=fp32", "sample_tokens=0",
             f"eval_every={steps}", "--quiet"]
    begin = time.perf_counter()
    subprocess.run([program, "train", text, f"run={run}", *words], check=True, stdout=subprocess.DEVNULL)
    whole = time.perf_counter() - begin
    done = subprocess.run([program, "eval", run, "--checkpoint", "last", "--json"], check=True, capture_output=True, text=True)
    with open(run / "metrics.csv", encoding="utf-8") as file:
        columns = file.readline().strip().split(",")
        at = columns.index("seconds")
        seconds = sum(float(line.split(",")[at]) for line in file if line.startswith("step,"))
    return json.loads(done.stdout)["metrics"]["loss"], seconds, whole


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--alone", action="store_true", help="only PyTorch's run, without output: to measure its memory")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.alone:
        pytorch(arguments.text.read_text(encoding="utf-8"), 1, arguments.steps)
        return
    version = subprocess.run([arguments.stoker, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(version.splitlines()[0])
    print(f"python {platform.python_version()}, torch {torch.__version__}, {arguments.threads} threads, fp32, "
          f"{arguments.steps} steps; seconds of the steps only, in brackets of Stoker's whole run")
    text = arguments.text.read_text(encoding="utf-8")
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, arguments.seeds + 1):
            for system in ("stoker", "pytorch") if seed % 2 else ("pytorch", "stoker"):
                if system == "stoker":
                    loss, seconds, whole = stoker(arguments.stoker.absolute(), arguments.text.absolute(), pathlib.Path(folder),
                                                  seed, arguments.steps, arguments.threads)
                    ours.append((loss, seconds))
                    print(f"seed {seed}: stoker   loss {loss:.4f}  {seconds:6.1f} s ({whole:.1f} s)", flush=True)
                else:
                    theirs.append(pytorch(text, seed, arguments.steps))
                    print(f"seed {seed}: pytorch  loss {theirs[-1][0]:.4f}  {theirs[-1][1]:6.1f} s", flush=True)
    ratios = [b[1] / a[1] for a, b in zip(ours, theirs)]
    print(f"mean loss: stoker {statistics.mean(each[0] for each in ours):.4f}, pytorch {statistics.mean(each[0] for each in theirs):.4f}")
    print(f"pytorch's time / stoker's: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
