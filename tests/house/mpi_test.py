# SPDX-License-Identifier: Apache-2.0
"""Training under mpirun, that of Open MPI and that of MPICH: `ranks=2` gives the same bytes."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

from packages import SKIPPED
from starters import LAUNCH, Starters

KINDS = {"mpirun.openmpi": "Open MPI", "mpirun.mpich": "MPICH"}


class Mpi(Starters):
    def setUp(self):
        super().setUp()
        self.found = [each for each in KINDS if shutil.which(each)]
        self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                OMPI_MCA_rmaps_base_oversubscribe="1")  # more ranks than cores

    def use(self, kind):
        """Makes it the mpirun of the PATH."""
        program = self.programs / "mpirun"  # no link: MPICH looks for its server beside the name that it was called by
        program.write_text(f'#!/bin/sh\nexec {shutil.which(kind)} "$@"\n')
        program.chmod(0o755)

    def test_trains(self):
        self.expect("steps=60")
        for kind in self.found:
            self.use(kind)
            self.run_line(self.line_of("mpirun", kind, "steps=60"))
            self.assert_expected(kind)
            self.assertIn(f'"started by {KINDS[kind]}"', (self.folder / kind / "plan.json").read_text())

    def test_ranks_that_meet_by_address_give_the_same(self):
        self.expect("steps=60")
        for number, kind in enumerate(self.found):
            self.use(kind)
            self.run_line(self.line_of("mpirun", kind, "steps=60"), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29541 + number))
            self.assert_expected(kind)

    # A container has the same process numbers and host name each time, and Open MPI makes its job's name of them.
    def test_a_second_start_in_a_container_meets_anew(self):
        if os.geteuid() != 0:
            self.skipTest("a process namespace needs root")
        self.expect("steps=20")
        for kind in self.found:
            self.use(kind)
            for turn in ("first", "second"):
                self.run_line("unshare --pid --fork --mount-proc " + self.line_of("mpirun", f"{turn}.{kind}", "steps=20"))
                self.assert_expected(f"{turn}.{kind}")

    def test_ranks_may_run_in_shells_of_their_own(self):
        self.expect("steps=20")
        for kind in self.found:
            self.use(kind)
            line = self.line_of("mpirun", kind, "steps=20")
            self.run_line(line.replace("stoker", "sh -c 'stoker") + "; exit $?'")
            self.assert_expected(kind)

    def test_the_example_goes_on_after_a_rank_was_lost(self):
        self.expect("steps=1500", "save_every=50")
        for kind in self.found:
            with self.subTest(kind):
                self.use(kind)
                words = [LAUNCH / "mpirun.sh", "t.csv", f"run=./{kind}", *self.options("steps=1500", "save_every=50"), "--quiet"]
                child = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
                self.addCleanup(lambda child=child: (child.kill(), child.wait()))
                self.wait_for_steps(kind, 200)
                os.kill(self.rank_of(child, 1), signal.SIGKILL)
                self.assertNotEqual(child.wait(timeout=60), 0)
                self.run_words(words, env=self.environment)
                self.assert_expected(kind)

    def rank_of(self, starter, rank):
        """The process of a rank that the starter, or a server of it, has started."""
        below = {starter.pid}
        processes = sorted(int(each.name) for each in pathlib.Path("/proc").glob("[0-9]*"))
        for pid in processes + processes:  # numbers may have begun anew
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[1]) in below:
                    below.add(pid)
                    variables = pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
                    if {f"OMPI_COMM_WORLD_RANK={rank}", f"PMI_RANK={rank}"} & set(variables):
                        return pid
            except OSError:  # it ended
                continue
        self.fail(f"no rank {rank}")


if __name__ == "__main__":
    if not any(map(shutil.which, KINDS)):
        print("SKIPPED: no mpirun: apt-get install openmpi-bin mpich")
        sys.exit(SKIPPED)
    unittest.main()
