#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of a training step by callgrind, which other work on the machine does not change: Stoker's loop with all
that is always on (logs, counted tensors, the watch for leaks) against a bare LibTorch loop, on the loop's own thread.

    bench/train/step_instructions.py BUILD [OPTION=VALUE...]     BUILD: build/release; options of `step_bench one`

The difference of a long and a short run, so that the start does not count. Instructions of the difference take as long
as the bare step's instructions at its own rate: an estimate of the time, without what more code costs in the caches.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

SHORT, LONG = 512, 1536  # steps: whole rounds of all that happens every so many steps
SKIPPED = 77


def instructions(step_bench, loop, steps, options):
    """Of the main thread."""
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
        subprocess.run(["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/out", str(step_bench), "one",
                        f"loop={loop}", f"steps={steps}", "seconds=1000000", *options], check=True, capture_output=True)
        main = pathlib.Path(folder, "out-01").read_text(encoding="utf-8", errors="replace")
    return next(int(line.split()[1]) for line in main.splitlines() if line.startswith("totals:"))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if shutil.which("valgrind") is None:
        print("SKIPPED: valgrind is not installed")
        return SKIPPED
    step_bench, options = pathlib.Path(sys.argv[1]) / "bench" / "step_bench", sys.argv[2:]
    per_step = {}
    for loop in ("bare", "stoker"):
        per_step[loop] = (instructions(step_bench, loop, LONG, options) - instructions(step_bench, loop, SHORT, options)) / (LONG - SHORT)
    timed = json.loads(subprocess.run([step_bench, "one", "loop=bare", "seconds=5", *options], check=True, capture_output=True, text=True).stdout)
    more = per_step["stoker"] - per_step["bare"]
    us = 1e3 * timed["ms"]
    print(f"instructions of a step, {' '.join(options) or 'model=mlp'}: bare {per_step['bare']:,.0f}, Stoker {per_step['stoker']:,.0f}: "
          f"{more:+,.0f} ({100 * more / per_step['bare']:+.1f} %)")
    print(f"a bare step takes {us:.1f} us, so they take about {us * more / per_step['bare']:.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
