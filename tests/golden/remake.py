#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rebuilds every golden and prints which ones changed (`make goldens`).

Runs each make_*.py of this folder on one thread, with the pinned packages of tests/requirements.txt and the pinned torch,
and no other packages of this machine (python3 -S). A file stays as it was if its numbers differ only by rounding: another
processor adds in another order.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
HOUSE = HERE.parents[1]
ROUNDING = 1e-13  # relative to the largest value of a tensor or text line: a tenth of the tests' tolerance
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")
KINDS = {".h", ".tsv", ".json", ".safetensors"}


def environment():
    def printed(tool):
        return subprocess.run([HOUSE / "tools" / tool], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    torch = pathlib.Path(printed("find_torch")).parent
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "OMP_", "MKL_"))}
    return kept | {"PYTHONPATH": f"{printed('python_packages')}:{torch}", "PYTHONNOUSERSITE": "1",
                   "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
                   "TRANSFORMERS_VERBOSITY": "error"}


def goldens():
    files = {path: path.read_bytes() for path in sorted(HERE.iterdir()) if path.suffix in KINDS}
    return {path: data for path, data in files.items() if path.suffix != ".h" or b"// Made by " in data[:200]}


def tensors(data):
    """{name: values} and the rest of the header of a .safetensors file of float64 tensors."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    body = data[8 + size:]
    values = {name: [v[0] for v in struct.iter_unpack("<d", body[slice(*each["data_offsets"])])]
              for name, each in header.items()}
    return values, (metadata, {name: each["shape"] for name, each in header.items()})


def largest_difference(path, old, new):
    """The largest relative difference; None if more than numbers changed."""
    if path.suffix == ".safetensors":
        (before, rest), (after, new_rest) = tensors(old), tensors(new)
    else:
        texts = [data.decode() for data in (old, new)]
        before, after = ({i: [float(n) for n in NUMBER.findall(line)] for i, line in enumerate(text.splitlines())}
                         for text in texts)
        rest, new_rest = (NUMBER.sub("#", text) for text in texts)
    if rest != new_rest:
        return None
    return max(max(abs(a - b) for a, b in zip(values, after[key])) / (max(map(abs, values)) or 1)
               for key, values in before.items() if values)


def verdict(path, old, new):
    if old is None:
        return "new"
    if old == new:
        return "identical"
    difference = largest_difference(path, old, new)
    if difference is not None and difference <= ROUNDING:
        path.write_bytes(old)
        return f"within rounding ({difference:.0e}), left as it was"
    return "CHANGED" + (f" by {difference:.1e} of the largest value" if difference is not None else "")


def main():
    before, variables = goldens(), environment()
    for script in sorted(HERE.glob("make_*.py")):
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-S", script], env=variables, capture_output=True, text=True)
        print(f"{script.name:22} {time.monotonic() - start:6.1f} s", flush=True)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
    after = goldens()
    for path, data in after.items():
        print(f"{path.name:22} {len(data):9,} bytes  {verdict(path, before.get(path), data)}")
    print(f"{len(after)} files, {sum(map(len, after.values())):,} bytes")
    subprocess.run(["git", "-C", HOUSE, "--no-pager", "diff", "--stat", "--", *after])


if __name__ == "__main__":
    main()
