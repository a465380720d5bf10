#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report of a long run: time to write it, size of the page, and Chromium's time until its charts are drawn.

    bench/io/report_bench.py [STOKER [STEPS]]     default build/release/apps/stoker/stoker, 1,000,000 steps
"""
import datetime
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HOME = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "tests/support"))
import chromium


def said(*command):
    return subprocess.run(command, cwd=HOME, capture_output=True, text=True).stdout.strip()


def main():
    stoker = sys.argv[1] if len(sys.argv) > 1 else HOME / "build/release/apps/stoker/stoker"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"{datetime.date.today()}, {cpu}, {platform.release()}, commit {said('git', 'rev-parse', '--short', 'HEAD')}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as root:
        run = pathlib.Path(root) / "run"  # written by a child process: a process starts with its parent's peak memory
        said(sys.executable, str(HOME / "tests/support/report_runs.py"), "long", str(run), str(steps))
        sizes = {name: (run / name).stat().st_size / 1e6 for name in ("metrics.csv", "metrics.jsonl")}
        print(f"{steps:,} steps, 400 evaluations, 200 classes: " + ", ".join(f"{name} {size:.0f} MB" for name, size in sizes.items()))
        times, cpu_times, memory = [], [], 0
        for _ in range(3):
            start = time.monotonic()
            process = subprocess.Popen([stoker, "report", run], stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                sys.exit(f"stoker report: exit code {process.returncode}")
            times.append(time.monotonic() - start)
            cpu_times.append(usage.ru_utime + usage.ru_stime)
            memory = max(memory, usage.ru_maxrss / 1024)
        print(f"stoker report: {statistics.median(times):.2f} s (of 3: {min(times):.2f} to {max(times):.2f}), {statistics.median(cpu_times):.2f} s of CPU, "
              f"peak memory {memory:.0f} MiB")
        page = run / "report.html"
        print(f"report.html: {page.stat().st_size / 1e6:.2f} MB (limit 3)")
        if not chromium.find():
            print("opening: not measured; " + chromium.HOW_TO_INSTALL)
            return
        with chromium.Browser(chromium.find()) as browser:
            opened = [browser.open(page) for _ in range(7)]
            charts = browser.ask("Charts.all.length")
            print(f"{browser.send('Browser.getVersion')['product']}: {statistics.median(opened):.2f} s until {charts} charts are drawn "
                  f"(of 7: {min(opened):.2f} to {max(opened):.2f}; limit 2), problems: {browser.problems or 'none'}")


if __name__ == "__main__":
    main()
