#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures that HolisticTraceAnalysis 0.5.0 computes of traces, as JSON lines. Run by trace_peers.py in its own process,
so that time and memory are HTA's alone.

Waits of streams (category cuda_sync) are left out for the breakdown: HTA counts "Stream Wait Event" as computation. The
critical path keeps them.
"""
import gzip
import json
import logging
import os
import resource
import sys
import tempfile
import time

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
logging.disable(logging.CRITICAL)


def opened(path):
    return gzip.open(path, "rt", errors="replace") if path.endswith(".gz") else open(path, errors="replace")


def without_waits(path, folder):
    """A copy without cuda_sync events, or the path itself if there are none."""
    with opened(path) as file:
        text = file.read()
    if '"cuda_sync"' not in text:
        return path
    trace = json.loads(text)
    trace["traceEvents"] = [each for each in trace["traceEvents"] if each.get("cat") != "cuda_sync"]
    copy = os.path.join(folder, "without_waits.json")
    with open(copy, "w") as file:
        json.dump(trace, file)
    return copy


def breakdown(path):
    from hta.trace_analysis import TraceAnalysis

    began = time.perf_counter()
    analysis = TraceAnalysis(trace_files={0: path}, trace_dir="", include_last_profiler_step=True)
    loaded = time.perf_counter()
    temporal = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True)
    done = time.perf_counter()
    return {
        "load_seconds": loaded - began,
        "seconds": done - began,
        "idle": float(temporal["idle_time(us)"]),
        "compute": float(temporal["compute_time(us)"]),
        "window": float(temporal["kernel_time(us)"]),
        "kinds": {row.kernel_type: float(row["sum"]) for _, row in kinds.iterrows()},
    }


def critical_path(path):
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: path}, trace_dir="", include_last_profiler_step=True)
    frame = analysis.t.get_trace(0)
    steps = [name for name in analysis.t.symbol_table.get_sym_table() if name.startswith("ProfilerStep#")]
    rows = frame[frame["name"].isin([analysis.t.symbol_table.get_sym_id_map()[each] for each in steps])]
    annotation, instances = ("ProfilerStep#", (0, len(rows) - 1)) if len(rows) else ("", 0)
    graph, found = analysis.critical_path_analysis(rank=0, annotation=annotation, instance_id=instances)
    if not found:
        return {"error": "no path was found"}
    nodes = graph.critical_path_nodes
    edges = [graph.edges[a, b]["object"] for a, b in zip(nodes, nodes[1:])]
    parts = {}
    for edge in edges:
        parts[edge.type.name] = parts.get(edge.type.name, 0) + float(edge.weight)
    return {"length": sum(float(edge.weight) for edge in edges), "edges": len(edges), "parts": parts,
            "begin": float(graph.node_list[nodes[0]].ts), "end": float(graph.node_list[nodes[-1]].ts)}


def attempt(work, *arguments):
    try:
        return work(*arguments)
    except BaseException as error:  # pylint: disable=broad-except  # a peer's failure is a result
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def main():
    what, paths = sys.argv[1], sys.argv[2:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            result = {"file": path}
            if what in ("breakdown", "all"):
                result["breakdown"] = attempt(lambda: breakdown(without_waits(path, folder)))
            if what == "speed":
                result["breakdown"] = attempt(breakdown, path)
            if what in ("path", "all"):
                result["path"] = attempt(critical_path, path)
            result["peak_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    main()
