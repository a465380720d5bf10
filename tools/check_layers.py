#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of rooms (docs/design.md, section 2) and a check of the source tree against it; `ctest -R layers` runs it.

    tools/check_layers.py [ROOT]      prints one line per violation and exits with 1; files to review do not fail
"""
import pathlib
import re
import sys

BELOW_JOB = ("base core augment data device resident ops precision optim models io memory parallel observe tasks train").split()
MAY_IMPORT = {  # room -> rooms, or room/folder, that it may include besides itself
    "base": [],
    "core": ["base"],
    "augment": ["base", "core"],
    "data": ["base", "core", "augment"],
    "device": ["base", "core", "augment"],
    "resident": ["base", "core", "augment", "device", "data/order"],
    "ops": ["base", "core"],
    "precision": ["base", "core"],
    "optim": ["base", "core"],
    "models": ["base", "core", "ops"],
    "io": ["base", "core"],
    "memory": ["base", "core", "ops", "device"],
    "parallel": ["base", "core", "device"],
    "observe": ["base", "core", "device"],
    "tasks": ["base", "core", "data", "augment", "models", "ops"],
    "train": ["base", "core", "data", "device", "precision", "optim", "memory", "parallel", "io/checkpoint"],
    "job": BELOW_JOB,
    "study": BELOW_JOB + ["job"],
    "apps": ["job", "study", "base"],
}
FLOORS = {  # room -> floor -> floors of the same room that it may include besides itself; "": the room's own files
    "data": {"decode": [], "order": [], "table": [], "folder": ["decode", "order", "table"], "text": ["order"],
             "load": ["decode", "folder", "order", "table"]},
    "tasks": {"": ["image", "table", "text", "metrics"], "metrics": [""], "image": ["", "metrics"],
              "table": ["", "metrics"], "text": ["", "metrics"]},
    "study": {"": [], "tips": [""], "inspect": [""], "data_bench": [""], "ranks_bench": ["", "tips"], "ps": [""], "top": ["", "ps"], "trace": [""], "doctor": ["", "trace"]},
}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
TORCH_FREE_ROOMS = ["base"]  # other torch-free parts are libraries without torch's include folder: the compiler checks
NEVER = re.compile(r"^torch/(torch|all|extension)\.h$")
NN = re.compile(r"^torch/nn(/|\.h$)")
NN_ROOMS = ["models", "tasks"]
SLOW_IN_HEADERS = re.compile(r"^(ATen/ATen\.h|torch/types\.h|torch/csrc/autograd/custom_function\.h)$")
HIDDEN_IN_HEADERS = re.compile(  # each is hidden in one .cpp
    r"^(torch/csrc/(distributed|profiler|autograd/profiler)\S*|jpeglib\.h|turbojpeg\.h|spng\.h|png\.h|webp/\S*|xxhash\.h|oniguruma\.h|zlib\.h|zstd\.h"
    r"|event2/\S*|curl/\S*|protozero/\S*|nlohmann/json\.hpp|simdjson\.h|toml\+\+/\S*|CLI/\S*|benchmark/\S*)$")
BANNED_NAMES = {"util", "utils", "common", "helper", "helpers", "misc"}
REVIEW_LINES, MOST_LINES, MOST_FUNCTION_LINES = 300, 500, 50

CODE = {".h", ".cpp", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".cmake", ""}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


class Report:
    def __init__(self):
        self.errors, self.reviews = [], []

    def error(self, path, line, text):
        self.errors.append(f"{path}:{line}: {text}")


def room_of(path):
    """'data' for src/stoker/data/x.h, 'apps' for apps/..., None for the umbrella src/stoker/stoker.h and the rest."""
    parts = path.parts
    if parts[0] == "apps":
        return "apps"
    return parts[2] if parts[:2] == ("src", "stoker") and len(parts) > 3 else None


def floor_of(path_in_room):
    """'load' for load/x.h, '' for x.h."""
    return path_in_room.split("/")[0] if "/" in path_in_room else ""


def check_floor(report, path, line, room, target):
    """An include of a file of the same room, if the room has floors."""
    own, other = floor_of("/".join(path.parts[3:])), floor_of(target.split("/", 2)[2])
    allowed = FLOORS[room].get(own)
    if allowed is None:
        report.error(path, line, f"room {room} has no floor {own}" if own else f"room {room} may only have files in its floors")
    elif other != own and other not in allowed:
        names = ", ".join(each or "files outside the floors" for each in allowed) or "none"
        report.error(path, line, f"floor {room}/{own} may not include {target}; floors that it may include: {names}")


def check_room_include(report, path, line, room, target):
    """An include of "stoker/..." from a file of a room."""
    parts = target.split("/")
    if len(parts) == 2:
        if room != "apps":
            report.error(path, line, f"includes {target}: the umbrella is for users, include what you need")
        return
    allowed = MAY_IMPORT.get(room, []) + [room]
    if not any("/".join(parts[1:]).startswith(each + "/") for each in allowed):
        report.error(path, line, f"room {room} may not include {target}; it may include {', '.join(allowed)}")
    elif room in FLOORS and parts[1] == room:
        check_floor(report, path, line, room, target)


def check_outside_include(report, path, line, room, target):
    """An include of a library's header."""
    header = path.suffix in {".h", ".cuh"}
    if NEVER.match(target):
        report.error(path, line, f"includes {target} (20 s per unit): include ATen/core/Tensor.h and ATen/ops/x.h")
    if room is None:
        return
    if room in TORCH_FREE_ROOMS and TORCH.match(target):
        report.error(path, line, f"room {room} is torch-free and includes {target}")
    if NN.match(target) and room not in NN_ROOMS:
        report.error(path, line, f"includes {target}: torch/nn belongs to {' and '.join(NN_ROOMS)}")
    if header and room != "apps" and (SLOW_IN_HEADERS.match(target) or HIDDEN_IN_HEADERS.match(target)):
        report.error(path, line, f"a header includes {target}: hide it in one .cpp (pImpl)")


def check_includes(report, root, path, lines):
    room = room_of(path)
    first = None
    for number, text in enumerate(lines, 1):
        found = INCLUDE.match(text)
        if not found:
            continue
        target = found[2]
        first = first or target
        if target.startswith("stoker/"):
            if not (root / "src" / target).is_file():
                report.error(path, number, f"includes {target}, which does not exist")
            elif room is not None:
                check_room_include(report, path, number, room, target)
        elif found[1] == '"' and path.parts[0] == "src":
            report.error(path, number, f'includes "{target}": paths start at src/, as in "stoker/base/error.h"')
        else:
            check_outside_include(report, path, number, room, target)
    own = path.with_suffix(".h")
    if path.parts[0] == "src" and path.suffix == ".cpp" and (root / own).is_file():
        if first != own.relative_to("src").as_posix():  # with the target headers, this proves that a header compiles alone
            report.error(path, 1, f"must include its own header first, {own.relative_to('src')}")


def check_functions(report, path, lines):
    """Blocks at column 0 in clang-format's layout: all functions except those inside a class."""
    start = None
    for number, text in enumerate(lines, 1):
        opens = text.endswith("{") and not text.startswith((" ", "}", "/", "#"))
        if opens or (start is None and text == ") {"):
            start = number
        is_type = re.match(r"(template\s*<.*>\s*)?(class|struct|enum|union|namespace|extern)\b|.*=\s*{$", text)
        if opens and is_type:
            start = None
        if start and text.startswith("}"):
            if number - start - 1 > MOST_FUNCTION_LINES:
                report.error(path, start, f"function of {number - start - 1} lines, at most {MOST_FUNCTION_LINES}")
            start = None


def check_text(report, path, lines):
    room = room_of(path)
    for number, text in enumerate(lines, 1):
        if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b(?! HWY_(ONCE|TARGET)\b)", text):  # docs/decisions/highway.md
            report.error(path, number, "preprocessor condition: choose by file or by interface instead")
        if re.search(r"\b(TODO|FIXME|XXX)\b", text):
            report.error(path, number, "a note to do later: do it or remove the note")
    if path.suffix in {".h", ".cuh"}:
        if "#pragma once" not in lines:
            report.error(path, 1, "header without #pragma once")
        if len(lines) < 2 or not lines[1].startswith("// "):
            report.error(path, 2, "a header must open with one to three sentences: what it is, who calls it, thread-safety")
    if path.parts[0] == "src" and room is not None:
        if room not in MAY_IMPORT:
            report.error(path, 1, f"room {room} is not in the table of rooms")
        wanted = "stoker" if room == "base" else f"stoker::{room}"
        spaces = [found[1] for text in lines if (found := re.match(r"(?:inline )?namespace (\S+) {", text))]
        if spaces and not any(each == wanted or each.startswith(wanted + "::") for each in spaces):
            report.error(path, 1, f"namespace = folder: expected namespace {wanted}")


def check_file(report, root, path):
    names = {part.rsplit(".", 1)[0].lower() for part in path.parts}
    if names & BANNED_NAMES and "gloo_headers" not in path.parts:  # they have the paths of Gloo's own
        report.error(path, 1, f"the name {', '.join(names & BANNED_NAMES)} says nothing: name the thing")
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
        report.error(path, 1, "the first line must be the SPDX licence line")
    if len(lines) >= MOST_LINES:
        report.error(path, 1, f"{len(lines)} lines, the limit is {MOST_LINES}: split it by concept")
    elif len(lines) >= REVIEW_LINES:
        report.reviews.append(f"{path}: {len(lines)} lines")
    if path.suffix in CODE:
        check_includes(report, root, path, lines)
        if path.parts[0] in {"src", "apps"}:
            check_text(report, path, lines)
            check_functions(report, path, lines)


def files(root):
    for top in ("src", "apps", "tests", "examples", "bench", "tools", "cmake"):
        for path in sorted((root / top).rglob("*")):
            relative = path.relative_to(root)
            script = top in {"tools", "cmake"} or path.suffix == ".py" or path.name == "CMakeLists.txt"
            ours = path.suffix in CODE or (script and (path.suffix in SCRIPTS or path.name == "CMakeLists.txt"))
            if path.is_file() and ours and "__pycache__" not in relative.parts:
                yield relative


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    report = Report()
    count = 0
    for count, path in enumerate(files(root), 1):
        check_file(report, root, path)
    if count == 0:
        sys.exit(f"{root}: no source files found")
    for line in report.reviews:
        print(f"review: {line}")
    for line in report.errors:
        print(line)
    print(f"{count} files, {len(report.errors)} violations, {len(report.reviews)} to review")
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
