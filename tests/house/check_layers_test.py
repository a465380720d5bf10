# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py: a small correct tree passes, and each planted violation fails with its own message."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def header(room, body="", includes=()):
    lines = "".join(f"#include {each}\n" for each in includes)
    return f"{SPDX}// What it is.\n#pragma once\n{lines}namespace stoker{room} {{\n{body}}}\n"


def source(room, includes=(), body="void f();\n"):
    return SPDX + "".join(f"#include {each}\n" for each in includes) + f"namespace stoker{room} {{\n{body}}}\n"


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.write("src/stoker/stoker.h", header(""))
        self.write("src/stoker/base/error.h", header(""))
        self.write("src/stoker/base/fmt.h", SPDX + "// A gate.\n#pragma once\n#include <fmt/format.h>\n")
        self.write("src/stoker/core/batch.h", header("::core", includes=("<ATen/core/Tensor.h>",)))
        self.write("src/stoker/data/load/loader.h", header("::data", includes=('"stoker/core/batch.h"',)))
        self.write("src/stoker/data/load/loader.cpp", source("::data", ('"stoker/data/load/loader.h"', "<nlohmann/json.hpp>")))
        self.write("src/stoker/io/checkpoint/store.h", header("::io"))
        self.write("src/stoker/io/safetensors.h", header("::io"))
        self.write("src/stoker/job/job.h", header("::job", includes=('"stoker/data/load/loader.h"',)))
        self.write("src/stoker/models/cnn.cpp", source("::models", ("<torch/nn/modules/conv.h>",)))
        self.write("src/stoker/train/loop.cpp", source("::train", ('"stoker/io/checkpoint/store.h"',)))
        self.write("apps/stoker/main.cpp", SPDX + '#include "stoker/job/job.h"\nint main() {}\n')

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def check(self):
        done = subprocess.run([CHECKER, self.root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def expect(self, path, text, message):
        self.write(path, text)
        code, output = self.check()
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)
        self.assertIn(path, output)
        self.assertIn("1 violations", output)

    def test_floors_include_downward(self):
        self.write("src/stoker/data/order/sampler.h", header("::data"))
        self.write("src/stoker/data/load/team.h", header("::data", includes=('"stoker/data/order/sampler.h"',)))
        code, output = self.check()
        self.assertEqual(code, 0, output)
        self.expect("src/stoker/data/decode/png.h", header("::data", includes=('"stoker/data/order/sampler.h"',)),
                    "floor data/decode may not include stoker/data/order/sampler.h")

    def test_a_room_with_floors_has_no_other_files(self):
        self.expect("src/stoker/data/png.h", header("::data", includes=('"stoker/data/load/loader.h"',)),
                    "room data may only have files in its floors")

    def test_a_correct_tree_passes(self):
        code, output = self.check()
        self.assertEqual(code, 0, output)
        self.assertIn("0 violations", output)

    def test_an_empty_tree_fails(self):
        shutil.rmtree(self.root / "src")
        shutil.rmtree(self.root / "apps")
        self.assertEqual(self.check()[0], 1)

    def test_wrong_room(self):
        self.expect("src/stoker/core/x.cpp", source("::core", ('"stoker/data/load/loader.h"',)), "room core may not include")

    def test_apps_use_only_job(self):
        self.expect("apps/stoker/train.cpp", SPDX + '#include "stoker/core/batch.h"\n', "room apps may not include")

    def test_train_sees_checkpoints_but_not_the_rest_of_io(self):
        self.expect("src/stoker/train/x.cpp", source("::train", ('"stoker/io/safetensors.h"',)), "may not include")

    def test_a_room_outside_the_table(self):
        self.expect("src/stoker/kitchen/x.cpp", source("::kitchen"), "not in the table")

    def test_missing_target_and_relative_path(self):
        self.expect("src/stoker/data/x.cpp", source("::data", ('"stoker/data/gone.h"',)), "does not exist")
        self.expect("src/stoker/data/x.cpp", source("::data", ('"loader.h"',)), "paths start at src/")

    def test_the_umbrella_header_is_for_users(self):
        self.expect("src/stoker/data/x.cpp", source("::data", ('"stoker/stoker.h"',)), "umbrella")

    def test_torch_in_base(self):
        for each in ("<ATen/core/Tensor.h>", "<c10/util/Half.h>", "<torch/csrc/autograd/variable.h>"):
            self.expect("src/stoker/base/x.cpp", source("", (each,)), "torch-free")

    def test_torch_h_even_in_tests(self):
        self.expect("tests/data/x_test.cpp", SPDX + "#include <torch/torch.h>\n", "torch/torch.h")

    def test_nn_only_in_models_and_tasks(self):
        self.expect("src/stoker/data/x.cpp", source("::data", ("<torch/nn.h>",)), "torch/nn belongs to")

    def test_hidden_libraries_in_headers(self):
        for each in ("jpeglib.h", "nlohmann/json.hpp", "CLI/CLI.hpp", "torch/csrc/distributed/c10d/Store.hpp"):
            self.expect("src/stoker/data/x.h", header("::data", includes=(f"<{each}>",)), "hide it in one .cpp")

    def test_own_header_first(self):
        self.expect("src/stoker/data/load/loader.cpp", source("::data", ("<vector>", '"stoker/data/load/loader.h"')), "own header first")

    def test_names_licence_and_namespace(self):
        self.expect("src/stoker/data/utils.cpp", source("::data"), "says nothing")
        (self.root / "src/stoker/data/utils.cpp").unlink()
        self.expect("src/stoker/data/x.cpp", "namespace stoker::data {\n}\n", "SPDX")
        self.expect("src/stoker/data/x.cpp", source("::io"), "namespace = folder")

    def test_header_opening(self):
        self.expect("src/stoker/data/x.h", header("::data").replace("#pragma once\n", ""), "without #pragma once")
        self.expect("src/stoker/data/x.h", header("::data").replace("// What it is.\n", ""), "must open with")

    def test_conditions_and_notes(self):
        self.expect("src/stoker/data/x.cpp", source("::data", body="#ifdef X\n#endif\n"), "preprocessor condition")
        self.expect("src/stoker/data/x.cpp", source("::data", body="// TO" "DO later\n"), "a note to do later")

    def test_lengths(self):
        self.expect("src/stoker/data/x.cpp", source("::data", body="int x;\n" * 497), "500 lines, the limit is 500")
        long = "void f() {\n" + "  g();\n" * 51 + "}\n"
        self.expect("src/stoker/data/x.cpp", source("::data", body=long), "function of 51 lines")
        self.write("src/stoker/data/x.cpp", source("::data", body=long.replace("  g();\n", "", 1)))
        self.assertEqual(self.check()[0], 0)
        self.write("src/stoker/data/x.cpp", source("::data", body="int x;\n" * 320))
        code, output = self.check()
        self.assertEqual(code, 0)
        self.assertIn("review: src/stoker/data/x.cpp", output)

    def test_scripts_need_a_licence(self):
        self.expect("tools/x", "#!/bin/sh\n", "SPDX")


if __name__ == "__main__":
    unittest.main()
