# SPDX-License-Identifier: Apache-2.0
"""Writes float64 tensors from Python as a .safetensors file that golden_file.h reads. It does not use the library's
writer, which changes the order of metadata each time. Used by the make_*.py in this folder."""
import json
import pathlib

import versions

HERE = pathlib.Path(__file__).parent


def write(name, generator, tensors, metadata=None):
    header = {"__metadata__": {"made by": f"tests/golden/{generator}", **versions.all(), **(metadata or {})}}
    body = b""
    for key, value in sorted(tensors.items()):
        data = value.detach().double().contiguous().numpy().tobytes()
        header[key] = {"dtype": "F64", "shape": list(value.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (HERE / name).write_bytes(len(text).to_bytes(8, "little") + text + body)
