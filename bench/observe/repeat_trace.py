#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a large trace from a small one: repeats its events with later times and other ids.

    bench/observe/repeat_trace.py FROM TO MEGABYTES      FROM may be compressed with gzip; TO is plain JSON
"""
import gzip
import json
import os
import sys

IDS = ("correlation", "External id", "external id", "Python id", "Python parent id", "Ev Idx")


def shifted(event, by, number, ids):
    event = dict(event)
    event["ts"] = round(float(event["ts"]) + by, 3)
    if "id" in event:
        event["id"] = int(event["id"]) + number * ids
    if event.get("args"):
        event["args"] = {key: value + number * ids if key in IDS and isinstance(value, int) and value > 0 else value
                         for key, value in event["args"].items()}
    if event.get("name", "").startswith("ProfilerStep#"):
        event["name"] = f"ProfilerStep#{int(event['name'][13:]) + 1000 * number}"
    return event


def repeat(source, target, bytes_wanted):
    opened = gzip.open if source.endswith(".gz") else open
    with opened(source, "rt", errors="replace") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    timed = [each for each in events if "ts" in each and each.get("ph") != "M"]
    begin = min(float(each["ts"]) for each in timed)
    span = max(float(each["ts"]) + float(each.get("dur", 0)) for each in timed) - begin + 1000
    ids = 1 + max([value for each in events for key, value in (each.get("args") or {}).items() if key in IDS and isinstance(value, int)] or [0])
    head = {key: value for key, value in trace.items() if key != "traceEvents"}
    with open(target, "w") as out:
        out.write(json.dumps(head)[:-1] + (", " if head else "") + '"traceEvents": [\n')
        out.write(",\n".join(json.dumps(each) for each in events if "ts" not in each or each.get("ph") == "M"))
        number, first = 0, not any("ts" not in each or each.get("ph") == "M" for each in events)
        while out.tell() < bytes_wanted:
            text = ",\n".join(json.dumps(shifted(each, number * span, number, ids)) for each in timed if each.get("name") != "Trace")
            out.write(("" if first else ",\n") + text)
            number, first = number + 1, False
        out.write("\n]}\n")


if __name__ == "__main__":
    repeat(sys.argv[1], sys.argv[2], float(sys.argv[3]) * 1e6)
    print(f"{sys.argv[2]}: {os.path.getsize(sys.argv[2]) / 1e6:.0f} MB")
