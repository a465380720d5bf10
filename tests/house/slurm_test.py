# SPDX-License-Identifier: Apache-2.0
"""Training under a real Slurm of two nodes on this machine (tests/support/local_slurm.py): srun on one node and on two,
the example for sbatch, a stop by scancel --signal, a lost rank, and mpirun in a job."""
import os
import pathlib
import re
import shutil
import signal
import sys
import time
import unittest

from packages import SKIPPED
from starters import COMMANDS, LAUNCH, STOKER, Starters
from local_slurm import LocalSlurm, why_not


class Slurm(Starters):
    @classmethod
    def setUpClass(cls):
        cls.slurm = LocalSlurm()
        cls.addClassCleanup(cls.slurm.stop)

    def setUp(self):
        super().setUp()
        self.environment.update(SLURM_CONF=self.slurm.environment["SLURM_CONF"])

    def submit(self, *words):
        done = self.run_line(" ".join(["sbatch", "--parsable", "--output=job.log", *words]))
        return done.stdout.strip()

    def job_line(self, *more):
        return [str(LAUNCH / "slurm.sbatch"), "t.csv", "run=part", *self.options(*more), "--quiet"]

    def state(self, job):
        text = self.slurm.words("scontrol", "show", "job", job)
        return {name: re.search(rf"\b{name}=(\S+)", text)[1] for name in ("JobState", "Restarts", "ExitCode")}

    def wait_for_end(self, job):
        end = time.monotonic() + 240
        while self.state(job)["JobState"] not in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"):
            self.assertLess(time.monotonic(), end, self.state(job))
            time.sleep(0.2)
        log = self.folder / "job.log"
        return self.state(job), log.read_text() if log.exists() else ""


class Srun(Slurm):
    def test_trains_on_one_node_and_on_two(self):
        self.expect("steps=60")
        for name, command in (("one", "srun"), ("two", "srun nodes")):
            self.run_line(self.line_of(command, name, "steps=60"))
            self.assert_expected(name)
            self.assertIn('"started by Slurm"', (self.folder / name / "plan.json").read_text())

    def test_the_job_may_have_the_number_of_an_earlier_one(self):
        self.expect("steps=20")
        for _ in range(2):  # a Slurm that lost its state counts from 1 again
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            self.run_line("srun -n 2 env SLURM_JOB_ID=1 SLURM_STEP_ID=0 " + self.line_of("srun", "run", "steps=20")[10:])
            self.assert_expected("run")

    def test_mpirun_in_a_job_counts_its_own_ranks(self):
        found = [each for each in ("mpirun.openmpi", "mpirun.mpich") if shutil.which(each)]
        if not found:
            self.skipTest("no mpirun: apt-get install openmpi-bin mpich")
        self.expect("steps=20")
        self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        for each in found:
            (self.folder / "job").write_text(f"#!/bin/sh\nexec {each} -n 2 {self.line_of('srun', each, 'steps=20')[10:]}\n")
            self.submit("--wait", "-N1", "-n2", "job")
            self.assert_expected(each)


class Sbatch(Slurm):
    def test_trains(self):
        self.expect("steps=60")
        (self.folder / "examples").symlink_to(LAUNCH.parent)
        line = COMMANDS["sbatch"].replace("DATA", " ".join(["t.csv", *self.options("steps=60")]))
        job = self.run_line(line).stdout.split()[-1]
        state, _ = self.wait_for_end(job)
        log = (self.folder / f"slurm-{job}.out").read_text()
        self.assertEqual((state["JobState"], state["Restarts"]), ("COMPLETED", "0"), log)
        self.assert_expected("runs/first")

    def test_goes_on_after_a_signal(self):
        self.expect("steps=1500", "save_every=100000")
        job = self.submit(*self.job_line("steps=1500", "save_every=100000"))
        for restarts in ("1", "2"):
            self.wait_for_steps("runs/part", 300 * int(restarts))
            self.slurm.words("scancel", "--signal=USR1", job)
            end = time.monotonic() + 60
            while self.state(job)["Restarts"] != restarts:
                self.assertLess(time.monotonic(), end, self.state(job))
                time.sleep(0.1)
        state, log = self.wait_for_end(job)
        self.assertEqual(state["JobState"], "COMPLETED", log)
        self.assertEqual(log.count("stopping and saving"), 2, log)
        self.assert_expected("runs/part")

    def test_goes_on_after_a_rank_was_lost(self):
        self.expect("steps=1500", "save_every=50")
        job = self.submit(*self.job_line("steps=1500", "save_every=50"))
        self.wait_for_steps("runs/part", 300)
        os.kill(self.process_of(job, rank=1), signal.SIGKILL)
        state, log = self.wait_for_end(job)
        self.assertEqual((state["JobState"], state["Restarts"]), ("COMPLETED", "1"), log)
        self.assert_expected("runs/part")

    def process_of(self, job, rank):
        mine = {f"SLURM_JOB_ID={job}", f"SLURM_PROCID={rank}", "SLURM_STEP_ID=0"}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (process / "environ").read_text(errors="replace").split("\0")
                if mine <= set(variables) and (process / "exe").resolve() == pathlib.Path(STOKER).resolve():
                    return int(process.name)
            except OSError:  # it ended
                continue
        self.fail(f"job {job} has no rank {rank}")


if __name__ == "__main__":
    if reason := why_not():
        print(f"SKIPPED: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
