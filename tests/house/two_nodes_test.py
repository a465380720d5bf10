# SPDX-License-Identifier: Apache-2.0
"""Ranks on two nodes, which are network namespaces of this machine (tests/support/two_nodes.py): started one by one by
their variables, and by torchrun; a cut cable, a rank that hangs, an agent of torchrun that is killed."""
import os
import signal
import subprocess
import sys
import time
import unittest

from packages import SKIPPED
from starters import STOKER, Starters
from two_nodes import NODES, TwoNodes, why_not

TIMEOUT = 5  # seconds, of a collective
LONG = ("steps=3000", "save_every=50")


class Nodes(Starters):
    def setUp(self):
        super().setUp()
        self.nodes, self.children = TwoNodes(), []
        self.addCleanup(lambda: [child.wait() for child in self.children])
        self.addCleanup(self.nodes.stop)  # before that: it ends all that runs there

    def start_on(self, node, line, log=None):
        """What it prints comes into the log."""
        log = self.folder / (log or f"{NODES[node]}.log")
        with open(log, "w") as file:
            child = subprocess.Popen(self.nodes.words(node, line), cwd=self.folder, env=self.environment,
                                     stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        self.children.append(child)
        child.log = log
        return child

    def start_ranks(self, run, *more, command="variables"):
        line = self.line_of(command, run, *more, HOST=NODES[0])
        return [self.start_on(node, line.replace("RANK=N", f"RANK={node}")) for node in (0, 1)]

    def finish(self, children, code=0, seconds=240):
        """Waits for all, each with that code; returns what they printed."""
        end = time.monotonic() + seconds
        for child in children:
            try:
                child.wait(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.fail(f"{child.log.name} did not end:\n" + self.texts(children))
        self.assertEqual([child.returncode for child in children], [code] * len(children), self.texts(children))
        return [child.log.read_text() for child in children]

    def texts(self, children):
        return "\n".join(f"{child.log.name}:\n{child.log.read_text()}" for child in children)

    def ranks_on(self, node):
        """The processes of stoker there."""
        return [pid for pid in self.nodes.processes(node) if self.program_of(pid) == os.path.realpath(STOKER)]

    def program_of(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/exe")
        except OSError:  # it ended
            return ""


class StartedByVariables(Nodes):
    def test_the_bytes_are_those_of_one_node(self):
        self.expect("steps=60")
        self.finish(self.start_ranks("part", "steps=60"))
        self.assert_expected("part")

    def test_a_run_folder_that_one_node_does_not_see(self):
        (self.folder / "runs").mkdir()
        line = self.line_of("variables", "runs/part", "steps=60", HOST=NODES[0])
        children = [self.start_on(0, line.replace("RANK=N", "RANK=0")),
                    self.start_on(1, "mount -t tmpfs none runs && " + line.replace("RANK=N", "RANK=1"))]
        for text in self.finish(children, code=2):
            self.assertIn("rank 1 does not see the run folder", text)

    def test_a_cut_cable_ends_both_and_the_run_goes_on(self):
        self.expect(*LONG)
        children = self.start_ranks("part", *LONG, f"rank_timeout={TIMEOUT}")
        self.wait_for_steps("part", 300)
        self.nodes.cut()
        first, second = self.finish(children, code=75, seconds=60)
        self.assertIn("rank 1 (node-b", first)
        self.assertRegex(second, r"rank 0 \(node-a|store of the ranks \(node-a:")
        self.assertLess(self.steps_of("part"), 3000)
        self.nodes.heal()
        self.finish(self.start_ranks("part", *LONG))
        self.assert_expected("part")

    def test_a_rank_that_is_stopped_is_named(self):
        self.expect(*LONG)
        for stopped in (0, 1):
            with self.subTest(stopped=stopped):
                run = f"part{stopped}"
                children = self.start_ranks(run, *LONG, f"rank_timeout={TIMEOUT}")
                self.wait_for_steps(run, 300)
                (process,) = self.ranks_on(stopped)
                os.kill(process, signal.SIGSTOP)
                (text,) = self.finish([children[1 - stopped]], code=75, seconds=60)
                self.assertRegex(text, rf"rank {stopped} \(node-{'ab'[stopped]}, process {process}\)")
                os.kill(process, signal.SIGCONT)
                self.finish([children[stopped]], code=75, seconds=60)
                self.finish(self.start_ranks(run, *LONG))
                self.assert_expected(run)

    def steps_of(self, run):
        return (self.folder / run / "metrics.jsonl").read_text().count('"event":"step"')


class StartedByTorchrun(Nodes):
    """With two ranks on each node. The agent of node-a has the store of all ranks."""
    STEPS = ("steps=800", "save_every=50")

    def setUp(self):
        super().setUp()
        self.add_torchrun()

    def agent_on(self, node):
        for pid in self.nodes.processes(node):
            with open(f"/proc/{pid}/cmdline") as words:
                if "torch.distributed.run" in words.read() and self.program_of(pid) != os.path.realpath(STOKER):
                    return pid
        self.fail(f"{NODES[node]} has no agent")

    def start_torchrun(self, run, *more):
        self.start_ranks(run, *more, command="torchrun nodes")
        self.wait_for_steps(run, 200)

    def wait_for_ranks(self, seconds=60):
        end = time.monotonic() + seconds
        while self.ranks_on(0) + self.ranks_on(1):
            self.assertLess(time.monotonic(), end, self.texts(self.children))
            time.sleep(0.1)

    def go_on(self, run):
        """The same command again, as a person or a scheduler would give it."""
        for node in (0, 1):
            for pid in self.nodes.processes(node):
                os.kill(pid, signal.SIGKILL)
        self.finish(self.start_ranks(run, *self.STEPS, command="torchrun nodes"))
        self.assert_expected(run)

    def test_the_bytes_are_those_of_one_node(self):
        self.expect("steps=60", ranks=4)
        self.finish(self.start_ranks("part", "steps=60", command="torchrun nodes"))
        self.assert_expected("part")

    def test_goes_on_after_a_cut_cable(self):
        self.expect(*self.STEPS, ranks=4)
        self.start_torchrun("part", *self.STEPS, f"rank_timeout={TIMEOUT}")
        self.nodes.cut()
        self.wait_for_ranks()
        self.assertIn("rank 2 (node-b", self.texts(self.children))
        self.nodes.heal()
        self.go_on("part")

    def test_ranks_whose_store_is_gone_save_and_stop(self):
        self.expect(*self.STEPS, ranks=4)
        self.start_torchrun("part", *self.STEPS)
        os.kill(self.agent_on(0), signal.SIGKILL)
        self.wait_for_ranks()
        self.assertIn("stopped at step", self.texts(self.children))
        self.go_on("part")

    def test_ranks_whose_agent_is_gone_train_to_the_end(self):
        self.expect(*self.STEPS, ranks=4)
        self.start_torchrun("part", *self.STEPS)
        os.kill(self.agent_on(1), signal.SIGKILL)
        self.wait_for_ranks(seconds=240)
        self.assert_expected("part")


if __name__ == "__main__":
    if reason := why_not():
        print(f"SKIPPED: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
