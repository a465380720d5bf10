#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `stoker doctor -- python ...` costs the script that it watches: a training of 1,000 steps of 50 ms, with and
without it, in turns; and of one with steps of a third of a millisecond, where each microsecond shows.

    bench/doctor/overhead.py STOKER [--repeats N] [--steps N]

The step computes on one thread for a fixed number of CPU seconds, so a busy machine adds little. "Outside" are the steps
after 200, when the shim's looks are over; they are measured in CPU time of the process.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = '''
import json, sys, time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
steps, milliseconds = int(sys.argv[1]), float(sys.argv[2])
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
data = torch.utils.data.TensorDataset(torch.randn(32 * 100, 64), torch.randint(10, (32 * 100,)))
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
step, clocks = 0, []
while step < steps:
    for inputs, targets in loader:
        end = time.thread_time() + milliseconds / 1e3
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        while time.thread_time() < end:
            pass
        step += 1
        if step in (1, 200, steps):
            clocks.append((time.perf_counter(), time.process_time()))
        if step == steps:
            break
(start, cpu), (early, early_cpu), (end, end_cpu) = clocks
print(json.dumps({"wall": end - start, "cpu": end_cpu - cpu, "outside": (end_cpu - early_cpu) / (steps - 200)}))
'''


def output(command):
    return subprocess.run([command], capture_output=True, text=True, check=True).stdout.strip()


def spread(values, form):
    return f"{form(statistics.median(values))} ({form(min(values))} to {form(max(values))})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    arguments = parser.parse_args()
    variables = {**os.environ, "PYTHONPATH": f"{output(ROOT / 'tools/python_packages')}:{pathlib.Path(output(ROOT / 'tools/find_torch')).parent}"}
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "train.py"
        script.write_text(SCRIPT)

        def run(steps, milliseconds, watched):
            prefix = [arguments.stoker, "doctor", "--out", f"{folder}/told", "--"] if watched else []
            done = subprocess.run([*prefix, "python3", script, str(steps), str(milliseconds)], capture_output=True, text=True, env=variables, check=True)
            return json.loads(done.stdout.splitlines()[-1])

        for steps, milliseconds in ((arguments.steps, 50), (20 * arguments.steps, 0)):
            whole, outside, each = [], [], []
            for turn in range(arguments.repeats):
                order = (False, True) if turn % 2 == 0 else (True, False)
                told = {watched: run(steps, milliseconds, watched) for watched in order}
                whole.append(told[True]["wall"] / told[False]["wall"] - 1)
                outside.append(told[True]["outside"] / told[False]["outside"] - 1)
                each.append(1e6 * (told[True]["outside"] - told[False]["outside"]))
            name = f"{steps:,} steps of {milliseconds} ms" if milliseconds else f"{steps:,} steps of {1e3 * told[False]['outside']:.2f} ms"
            print(f"{name}, {arguments.repeats} pairs: the whole run {spread(whole, lambda x: f'{100 * x:+.2f} %')}; "
                  f"CPU outside of the first 200 steps {spread(outside, lambda x: f'{100 * x:+.2f} %')}, "
                  f"{spread(each, lambda x: f'{x:+.1f} us')} per step", flush=True)


if __name__ == "__main__":
    sys.exit(main())
