#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library's reference (Doxyfile) builds without a warning, and its pages have the text of the headers.

The filter and the code on the main page are tested without doxygen; the rest prints a skip message without it.
"""
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]


def code_of(text):
    """Each line without its comments and indentation."""
    return [re.sub(r"/\*\*.*?\*/|//.*", "", line).strip() for line in text.splitlines()]


def test_filter():
    filtered = runpy.run_path(str(ROOT / "tools/doxygen_filter"))["filtered"]
    for header in sorted((ROOT / "src/stoker").rglob("*.h")):
        text = header.read_text(encoding="utf-8")
        assert code_of(filtered(header)) == code_of(text), f"{header}: the filter changes code"
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder) / "sample_box.h"
        header.write_text("// SPDX-License-Identifier: Apache-2.0\n// Holds <samples>. One thread.\n\n"
                          "struct Other {\n  int a = 0;  // bytes\n              // each\n};\n"
                          "class SampleBox {\n  // True @ once.\n  bool get() {\n    // inside\n    return true;\n  }\n};\n")
        expected = ("/// @file\n/// Holds \\<samples\\>. One thread.\n\n"
                    "struct Other {\n  int a = 0;  ///< bytes\n              ///< each\n};\n"
                    "/** Holds \\<samples\\>. One thread. */ class SampleBox {\n  /// True \\@ once.\n"
                    "  bool get() {\n    // inside\n    return true;\n  }\n};\n")
        assert filtered(header) == expected, f"expected\n{expected}\ngot\n{filtered(header)}"


def test_snippet():
    """The code in docs/api.md is compiled and run as a part of tests/consumer."""
    shown = re.search(r"```cpp\n(.*?)```", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    include, lines = shown.split("\n\n", 1)
    program = (ROOT / "tests/consumer/main.cpp").read_text(encoding="utf-8")
    body = re.search(r"^void train_on_photos\(\) {\n(.*?)^}", program, re.DOTALL | re.MULTILINE)[1]
    assert include in program.splitlines(), f"tests/consumer/main.cpp lacks {include}"
    assert lines == textwrap.dedent(body), f"docs/api.md shows\n{lines}\ntests/consumer/main.cpp has\n{body}"


def doxygen(changes):
    ran = subprocess.run(["doxygen", "-"], input=f"@INCLUDE = Doxyfile\n{changes}\n", cwd=ROOT, text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ran.returncode, ran.stdout


def test_pages(folder):
    code, said = doxygen(f"OUTPUT_DIRECTORY = {folder}")
    assert code == 0 and said.strip() == "", f"doxygen exited with {code}:\n{said}"
    pages = folder / "html"
    batch = (pages / "classstoker_1_1core_1_1Batch.html").read_text(encoding="utf-8")
    for words in ("One global batch on its way from the loader to the step", "own_dataset.cpp",
                  "Samples first ... last-1 as a separate batch"):
        assert words in batch, f"the page of Batch lacks: {words}"
    layout = (pages / "namespacestoker_1_1core.html").read_text(encoding="utf-8")
    assert "values of all samples end to end" in layout, "comments after enumerators are missing"
    main = (pages / "index.html").read_text(encoding="utf-8")
    for example in sorted(each.name for each in (ROOT / "examples").glob("*.cpp")):
        page = example.replace(".cpp", "_8cpp-example.html")
        assert (pages / page).is_file(), f"{example} has no page: add it to docs/api.dox"
        assert page in main, f"the main page does not link to {example}: add it to docs/api.md"


def test_a_warning_fails(folder):
    wrong = folder / "wrong.dox"
    wrong.write_text("/// @mainpage\n/// See @ref nothing_of_that_name.\n")
    code, said = doxygen(f"OUTPUT_DIRECTORY = {folder}\nINPUT = {wrong}\nUSE_MDFILE_AS_MAINPAGE =")
    assert code != 0 and "nothing_of_that_name" in said, f"doxygen ended with {code}:\n{said}"


def main():
    test_filter()
    test_snippet()
    if shutil.which("doxygen") is None:
        print("SKIPPED: doxygen is missing (tools/bootstrap doxygen installs it); only the filter and the code shown were tested")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        test_pages(pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        test_a_warning_fails(pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
