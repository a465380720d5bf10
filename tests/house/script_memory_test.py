# SPDX-License-Identifier: Apache-2.0
"""`stoker doctor -- python ...` of scripts that end since memory ran out: where, in what, and what to change."""
import re
import unittest

from script_doctor_test import Watched

HUGE = "torch.empty(10 ** 15)"


class OutOfMemory(Watched):
    def advice(self, text, training=True, same_error=True):
        """The finding about memory, of a script that ends as it does without the doctor."""
        script = self.write(text, training=training)
        plain = self.run_plain("python3", script)
        watched, found = self.watch("python3", script)
        self.assertEqual((watched.returncode, watched.stdout), (plain.returncode, plain.stdout))
        last, wanted = (re.sub(r"\d+", "N", each.stderr.splitlines()[-1]) for each in (watched, plain))  # numbers of processes
        if same_error:
            self.assertEqual(last, wanted)
        self.assertNotIn("memory.py", watched.stderr)
        advice = [each for each in found["findings"] if each["rule"] == "oom_advice"]
        self.assertLessEqual(len(advice), 1)
        if advice:
            self.assertEqual(found["findings"][0], advice[0])
            self.assertTrue(advice[0]["critical"])
            self.assertIn(advice[0]["claim"], found["verdict"])
        return advice[0] if advice else None

    def test_before_the_first_step(self):
        found = self.advice(f"""
            import torch
            data = torch.utils.data.DataLoader(torch.zeros(64, 4), batch_size=32)
            for batch in data:
                {HUGE}
        """, training=False)
        self.assertIn("Main memory ran out at train.py:5", found["claim"])
        self.assertIn("less at a time", found["cure"])
        self.assertTrue(any(f"train.py:5: {HUGE}" in each for each in found["evidence"]), found["evidence"])
        self.assertTrue(any(each.startswith("asked for: ") for each in found["evidence"]), found["evidence"])

    def test_in_a_forward_pass(self):
        found = self.advice(f"""
            import torch
            class Net(torch.nn.Module):
                def forward(self, inputs):
                    return {HUGE}
            for batch in torch.utils.data.DataLoader(torch.zeros(64, 4), batch_size=32):
                Net()(batch)
        """, training=False)
        self.assertIn("Main memory ran out at train.py:5 in forward", found["claim"])
        self.assertEqual(found["option"], "batch_size=16")

    def test_in_an_evaluation_after_steps(self):
        found = self.advice(f"""
            train(40)
            class Grows(nn.Module):
                def forward(self, inputs):
                    return {HUGE}
            model = Grows().eval()
            model(torch.zeros(1))
        """)
        self.assertIn("in the evaluation", found["claim"])

    def test_in_a_data_set_by_numpy(self):
        found = self.advice("""
            class Whole(torch.utils.data.Dataset):
                def __len__(self):
                    return 4
                def __getitem__(self, index):
                    return numpy.zeros(10 ** 16)
            train(40)
            for batch in torch.utils.data.DataLoader(Whole()):
                pass
        """)
        self.assertIn("in the data set", found["claim"])

    def test_a_worker_that_the_system_ended(self):
        for number, what in (("SIGKILL", "The system killed a worker"), ("SIGBUS", "Shared memory (/dev/shm) ran out in a worker")):
            found = self.advice(f"""
                class Ends(torch.utils.data.Dataset):
                    def __len__(self):
                        return 64
                    def __getitem__(self, index):
                        if index == 40:
                            os.kill(os.getpid(), signal.{number})
                        return torch.zeros(4)
                train(20)
                for batch in torch.utils.data.DataLoader(Ends(), batch_size=4, num_workers=2):
                    time.sleep(0.01)
            """, same_error=False)  # torch itself has two: the worker was killed, or exited unexpectedly
            self.assertIn(what, found["claim"])

    def test_another_error_is_none_of_memory(self):
        self.assertIsNone(self.advice("train(40); raise RuntimeError('memory of an elephant')"))

    def test_a_script_with_a_hook_of_its_own_keeps_it(self):
        script = self.write(f"""
            import sys
            sys.excepthook = lambda kind, error, trace: print("mine", kind.__name__)
            import torch
            {HUGE}
        """, training=False)
        watched, found = self.watch("python3", script)
        self.assertEqual((watched.returncode, watched.stdout.splitlines()[-1]), (1, "mine RuntimeError"))
        self.assertEqual(self.rules(found), ["oom_advice"])

    def test_without_memory_for_a_note_the_error_is_shown(self):
        script = self.write(f"""
            import torch
            class Full(RuntimeError):
                def __str__(self):
                    raise MemoryError
            raise Full
        """, training=False)
        watched, _ = self.watch("python3", script)
        self.assertEqual(watched.returncode, 1)
        self.assertNotIn("excepthook", watched.stderr)
        self.assertNotIn("stoker_shim", watched.stderr)


if __name__ == "__main__":
    unittest.main()
