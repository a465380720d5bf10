#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stoker trace beside HolisticTraceAnalysis and a bare json.load: equal figures, time and memory of the same work.

    bench/observe/trace_peers.py STOKER TRACES [--quick] [--figures FILE]

TRACES: a folder of recorded traces. --figures also writes HTA's figures, which tests/house/trace_test.py compares with.
Needs the packages of bench/observe/requirements.txt in PYTHONPATH. gpuprof 0.7.1 and traceml-ai 0.5.0 record inside a
Python program while it runs and read no recorded traces, so they are not here.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LOAD = "import json,gzip,sys; p=sys.argv[1]; json.load((gzip.open if p.endswith('.gz') else open)(p, 'rt', errors='replace'))"


def run(command):
    """Seconds of wall time, seconds of CPU time, peak memory in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status != 0:
        raise RuntimeError(f"{command} ended with {status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def hta_figures(paths):
    done = subprocess.run([sys.executable, HERE / "hta_figures.py", "all", *paths], capture_output=True, text=True, check=True)
    return {os.path.basename(row["file"]): row for row in map(json.loads, done.stdout.splitlines())}


def stoker_figures(stoker, path):
    done = subprocess.run([stoker, "trace", path, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout)["traces"][0] if done.returncode == 0 else None


def compare_figures(stoker, paths, figures):
    print("Busy and computing, percent of the time from the first to the last work; HolisticTraceAnalysis (HTA) without")
    print("records of waits, which it counts as computation. Path: length of the critical path in ms; 'recorded' by the")
    print("edges that HTA knows.\n")
    print(f"{'trace':44} {'busy':>7} {'HTA':>7} {'computing':>9} {'HTA':>7} {'path':>10} {'recorded':>10} {'HTA':>10}")
    kept, worst_busy, worst_path = {}, 0, 0
    for path in paths:
        name = os.path.basename(path)
        row, own = figures[name], stoker_figures(stoker, path)
        cells, remark = [f"{name[:44]:44}"], ""
        hta, ours = row["breakdown"], own and own["devices"]
        if "error" in hta or not ours:
            cells.append(f"{'-':>7} {'-':>7} {'-':>9} {'-':>7}")
        else:
            busy, compute = 100 * (1 - hta["idle"] / hta["window"]), 100 * hta["compute"] / hta["window"]
            whole = sum_of_devices(ours)
            cells.append(f"{whole[0]:7.2f} {busy:7.2f} {whole[1]:9.2f} {compute:7.2f}")
            if name.startswith("trace_compare_"):
                remark = "  cut by hand: HTA drops work whose launch is not in the file"
            elif len(ours) == 1:  # HTA's union is over all devices of a trace
                worst_busy = max(worst_busy, abs(whole[0] - busy), abs(whole[1] - compute))
                kept.setdefault(name, {}).update(busy=busy, compute=compute)
        length, found = row["path"].get("length"), own and own["critical_path"]
        if length is None or not found:
            cells.append(f"{'-':>10} {'-':>10} {'-':>10}")
        else:
            recorded = found["length_by_recorded_edges_ms"]
            cells.append(f"{found['length_ms']:10.3f} {recorded:10.3f} {length / 1e3:10.3f}")
            kept.setdefault(name, {}).update(path_ms=length / 1e3)
            if "mi300" not in name and "mtia" not in name:  # HTA knows the blocking calls of CUDA only
                worst_path = max(worst_path, abs(recorded * 1e3 / length - 1))
        print(" ".join(cells) + remark)
    print(f"\nlargest difference of busy or computing: {worst_busy:.3f} points; of the path by recorded edges, CUDA: {100 * worst_path:.3f} %")
    return kept


def sum_of_devices(devices):
    use = devices[0]["first_to_last_work"]
    return 100 * use["busy_share"], 100 * use["compute_ms"] / use["total_ms"]


def compare_speed(stoker, cases, repeats):
    print(f"\nThe same work in a process of its own: read the trace, busy and idle time, kernels; stoker: also the critical path. {repeats} repeats in turns, median (range).\n")
    print(f"{'trace':42} {'MB':>5}  {'who':28} {'wall s':>16} {'CPU s':>7} {'MiB':>7}")
    for path, with_hta in cases:
        who = {"stoker trace": [stoker, "trace", path], "python json.load": [sys.executable, "-c", LOAD, path]}
        if with_hta:
            who["HolisticTraceAnalysis 0.5.0"] = [sys.executable, HERE / "hta_figures.py", "speed", path]
        found = {name: [] for name in who}
        for _ in range(repeats):
            for name, command in who.items():
                found[name].append(run(command))
        size = stoker_figures(stoker, path)["json_bytes"] / 1e6
        middle = {}
        for name, rows in found.items():
            wall = [row[0] for row in rows]
            middle[name] = [statistics.median(row[i] for row in rows) for i in range(3)]
            print(f"{os.path.basename(path)[:42]:42} {size:5.0f}  {name:28} {middle[name][0]:6.2f} ({min(wall):.2f}-{max(wall):.2f}) {middle[name][1]:7.2f} {middle[name][2]:7.0f}")
        ours = middle["stoker trace"]
        for name in list(who)[1:]:
            print(f"{'':49}  {'against ' + name:28} {middle[name][0] / ours[0]:.1f} times as fast, CPU {middle[name][1] / ours[1]:.1f}, 1/{middle[name][2] / ours[2]:.1f} of the memory")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker")
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="a check that it runs")
    parser.add_argument("--figures", help="write HTA's figures to this file")
    arguments = parser.parse_args()
    paths = sorted(map(str, arguments.traces.glob("*/*.json.gz")))
    if not paths:
        print(f"no recorded traces in {arguments.traces}: skipped")
        return 77
    paths = paths[-6:] if arguments.quick else paths
    kept = compare_figures(arguments.stoker, paths, hta_figures(paths))
    if arguments.figures:
        with open(arguments.figures, "w") as file:
            json.dump({"source": "HolisticTraceAnalysis 0.5.0, bench/observe/trace_peers.py", "traces": kept}, file, indent=1)
            file.write("\n")
    with tempfile.TemporaryDirectory() as folder:
        source, large = str(next(arguments.traces.glob("kineto/resnet50_nw0_A*.gz"))), os.path.join(folder, "large.json")
        subprocess.run([sys.executable, HERE / "repeat_trace.py", source, large, "20" if arguments.quick else "300"], check=True, stdout=subprocess.DEVNULL)
        compare_speed(arguments.stoker, [(source, True), (large, not arguments.quick)], 2 if arguments.quick else 5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
