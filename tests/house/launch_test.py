# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/parallel.md and the examples of examples/launch, as far as they need no Slurm and no second node."""
import os
import pathlib
import signal
import socket
import subprocess
import unittest

from starters import COMMANDS, LAUNCH, Starters, page_commands
from ranks_test import listening


class Page(unittest.TestCase):
    def test_has_the_commands_that_tests_run(self):
        self.assertEqual(page_commands(), list(COMMANDS.values()))


class OneMachine(Starters):
    def test_the_commands_give_the_same_bytes(self):
        self.run_line(self.line_of("ranks", "expected", "steps=60"))
        self.add_torchrun()
        line = COMMANDS["torchrun"].replace("DATA", " ".join(["t.csv", *self.options("steps=60")]))
        self.run_line(line)
        self.assert_expected("runs/first")

    def test_one_rank_for_each_gpu(self):
        if not list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
            self.skipTest("there is no GPU; house.rank_times has what is said then")
        self.run_line(self.line_of("gpus", "all", "steps=60"))

    def test_a_signal_of_slurm_stops_and_saves(self):
        child = self.start(self.words("part", "steps=100000", "ranks=2", "--quiet"))
        self.wait_for_steps("part", 50)
        child.send_signal(signal.SIGUSR1)
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 75, err)
        self.assertTrue((self.folder / "part/checkpoints/last").exists())


class Torchrun(Starters):
    def setUp(self):
        super().setUp()
        self.add_torchrun()

    def start_example(self, *more, **variables):
        words = [LAUNCH / "torchrun.sh", "t.csv", *self.options("run=part", *more), "--quiet"]
        child = subprocess.Popen(words, cwd=self.folder, env={**self.environment, "PORT": str(free_port()), **variables},
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: (child.kill(), child.communicate()))
        return child

    def test_the_example_starts_a_lost_rank_again(self):
        self.expect("steps=800", "save_every=50")
        child = self.start_example("steps=800", "save_every=50")
        self.wait_for_steps("runs/part", 150)
        os.kill(self.ranks_of(child)[1], signal.SIGKILL)
        out, _ = child.communicate(timeout=240)
        self.assertEqual(child.returncode, 0, out)
        self.assert_expected("runs/part")

    def test_stoker_itself_listens_on_loopback_alone(self):
        child = self.start_example("steps=100000")
        self.wait_for_steps("runs/part", 50)
        heard = [address for pid in self.ranks_of(child) for address in listening(pid)]
        self.assertGreater(len(heard), 0)
        self.assertEqual([each for each in heard if not each.startswith("127.")], [])
        os.kill(self.ranks_of(child)[0], signal.SIGTERM)
        child.communicate(timeout=60)

    def ranks_of(self, child):
        stoker = os.path.realpath(self.programs / "stoker")
        return [pid for pid in self.others(child) if os.readlink(f"/proc/{pid}/exe") == stoker]


class Kubernetes(Starters):
    def pods(self):
        """The command and the variables of each pod of the example's job."""
        try:
            import yaml
        except ImportError:
            self.skipTest("PyYAML is not installed")
        service, job = yaml.safe_load_all((LAUNCH / "kubernetes.yaml").read_text())
        self.assertEqual(service["spec"]["selector"], {"job-name": job["metadata"]["name"]})
        spec = job["spec"]
        self.assertEqual(spec["completionMode"], "Indexed")
        pod = spec["template"]["spec"]
        (container,) = pod["containers"]
        variables = {each["name"]: each["value"] for each in container["env"]}
        name = job["metadata"]["name"]
        self.assertEqual(variables["MASTER_ADDR"], f"{name}-0.{service['metadata']['name']}")  # Kubernetes' name of pod 0
        self.assertEqual(pod["subdomain"], service["metadata"]["name"])
        self.assertEqual(int(variables["WORLD_SIZE"]), spec["completions"])
        self.assertEqual(spec["parallelism"], spec["completions"])
        return [(container["command"], {**variables, "JOB_COMPLETION_INDEX": str(index)}) for index in range(spec["completions"])]

    def start_pods(self, *more):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                 "ARGUMENTS": " ".join(["t.csv", *self.options("run=first", *more), "--quiet"])}
        started = []
        for command, variables in self.pods():
            child = subprocess.Popen(command, cwd=self.folder, env={**self.environment, **variables, **place},
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.addCleanup(lambda child=child: (child.kill(), child.communicate()))
            started.append(child)
        return started

    def test_the_command_of_the_example_trains(self):
        self.expect("steps=60")
        for child in self.start_pods("steps=60"):
            out, _ = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 0, out)
        self.assert_expected("runs/first")

    def test_pods_that_are_started_again_go_on(self):
        self.expect("steps=800", "save_every=50")
        pods = self.start_pods("steps=800", "save_every=50")
        self.wait_for_steps("runs/first", 150)
        pods[1].terminate()  # as when its node is emptied; the shell is stoker by then
        for child in pods:
            out, _ = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 75, out)
        for child in self.start_pods("steps=800", "save_every=50"):
            out, _ = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 0, out)
        self.assert_expected("runs/first")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


if __name__ == "__main__":
    unittest.main()
