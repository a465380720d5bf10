# SPDX-License-Identifier: Apache-2.0
"""tools/stoker.bash-completion in a real bash: the candidates after a press of the tab key."""
import os
import pathlib
import re
import subprocess
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/stoker.bash-completion"


def candidates(line):
    program = f'source "{SCRIPT}"; _stoker; printf "%s\\n" "${{COMPREPLY[@]}}"'
    environment = dict(os.environ, COMP_LINE=line, COMP_POINT=str(len(line)),
                       PATH=os.environ["STOKER_BIN"] + ":" + os.environ["PATH"])
    done = subprocess.run(["bash", "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


class Completion(unittest.TestCase):
    def test_commands(self):
        self.assertEqual(candidates("stoker tra"), ["train", "trace"])
        self.assertIn("predict", candidates("stoker "))

    def test_options_and_flags(self):
        self.assertEqual(candidates("stoker train data label_sm"), ["label_smoothing="])
        self.assertEqual(candidates("stoker train data --q"), ["--quiet"])
        self.assertEqual(candidates("stoker resume runs/x label_sm"), [])
        self.assertEqual(candidates("stoker resume runs/x epo"), ["epochs="])
        self.assertEqual(candidates("stoker eval runs/x --sp"), ["--split"])
        self.assertEqual(candidates("stoker eval runs/x "), [])  # bash completes files

    def test_values_without_the_part_before_the_equals_sign(self):
        self.assertEqual(candidates("stoker train data model=resnet"), ["resnet18", "resnet34", "resnet50"])

    def test_options_of_inspect(self):
        self.assertEqual(candidates("stoker insp"), ["inspect"])
        self.assertEqual(candidates("stoker inspect data --ima"), ["--images"])
        self.assertEqual(candidates("stoker inspect da"), [])  # bash completes files

    def test_benches(self):
        self.assertEqual(candidates("stoker bench t"), ["tips"])
        self.assertEqual(candidates("stoker bench tips --qu"), ["--quick"])
        helped = subprocess.run([os.environ["STOKER_BIN"] + "/stoker", "bench", "tips", "--help"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(set(candidates("stoker bench tips --")), set(re.findall(r"^  (?:-h,)?(--[a-z-]+)", helped, re.MULTILINE)))
        self.assertEqual(candidates("stoker bench tip --"), [])
        self.assertEqual(candidates("stoker bench tips --models mlp,resnet1"), ["mlp,resnet18"])
        self.assertIn("channels-last", candidates("stoker bench tips --tips "))


if __name__ == "__main__":
    unittest.main()
