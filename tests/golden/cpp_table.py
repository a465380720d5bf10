# SPDX-License-Identifier: Apache-2.0
"""Writes numbers from Python as a C++ header of constants. Used by the make_*.py in this folder."""
import pathlib

import versions


def number(value):
    return repr(float(value))


def array(name, values):
    body = ", ".join(number(v) for v in values)
    return f"inline const std::vector<double> {name}{{{body}}};"


def write(name, generator, lines, includes=("vector",)):
    head = [
        "// SPDX-License-Identifier: Apache-2.0",
        "// clang-format off",
        f"// Made by tests/golden/{generator} with {versions.text()}; do not edit.",
        "#pragma once",
        "",
        *[f"#include <{each}>" for each in includes],
        "",
        "namespace stoker::golden {",
        "",
    ]
    text = "\n".join([*head, *lines, "", "}  // namespace stoker::golden", ""])
    (pathlib.Path(__file__).parent / name).write_text(text)
