# SPDX-License-Identifier: Apache-2.0
"""For tests that start ranks as docs/parallel.md says: the commands of the page, each run by one of the tests."""
import os
import pathlib
import shutil
import subprocess

from ranks_test import ENVIRONMENT, OPTIONS, Ranks, STOKER, TORCH
from packages import PACKAGES

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "examples" / "launch"
COMMANDS = {  # each of them has the page; in brackets: who runs it
    "ranks": "stoker train DATA ranks=2",  # launch_test
    "torchrun": "torchrun --no-python --nproc-per-node=2 stoker train DATA run=first",  # launch_test
    "torchrun nodes": "torchrun --no-python --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=HOST:29500 "
                      "stoker train DATA",  # two_nodes_test
    "gpus": "stoker train DATA device=cuda:all",  # launch_test, where there are GPUs
    "variables": "RANK=N WORLD_SIZE=2 MASTER_ADDR=HOST MASTER_PORT=29500 stoker train DATA",  # two_nodes_test
    "srun": "srun -n 2 stoker train DATA",  # slurm_test
    "srun nodes": "srun -N 2 -n 2 stoker train DATA",  # slurm_test
    "sbatch": "sbatch examples/launch/slurm.sbatch DATA run=first",  # slurm_test
    "mpirun": "mpirun -n 2 stoker train DATA",  # mpi_test
    "pipeline": "stoker train DATA pipeline=2",  # ranks_test
    "pipelines": "stoker train DATA pipeline=2 ranks=4",  # ranks_test
}


def page_commands():
    """The lines of the page's blocks of shell commands."""
    inside, found = False, []
    for line in (ROOT / "docs" / "parallel.md").read_text().splitlines():
        if line.startswith("```"):
            inside = line == "```sh"
        elif inside:
            found.append(line.split("  #")[0].strip())
    return found


class Starters(Ranks):
    def setUp(self):
        super().setUp()
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        (self.programs / "stoker").symlink_to(STOKER)
        self.environment = {**ENVIRONMENT, "PATH": f"{self.programs}:{ENVIRONMENT['PATH']}:/usr/sbin:/sbin"}

    def add_torchrun(self):
        """Puts a torchrun into the PATH, that of the torch which was found."""
        if TORCH.returncode != 0:
            self.skipTest("PyTorch is not installed: no torchrun")
        program = self.programs / "torchrun"
        path = os.pathsep.join([PACKAGES, str(pathlib.Path(TORCH.stdout.strip()).parent)])
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec {shutil.which("python3")} -m torch.distributed.run "$@"\n')
        program.chmod(0o755)

    def line_of(self, command, run, *more, **places):
        """The command of the page with a run of its own."""
        keys = [word.split("=")[0] for word in more]
        options = [*(word for word in OPTIONS if word.split("=")[0] not in keys), f"run=./{run}", *more, "--quiet"]
        line = COMMANDS[command].replace("DATA", " ".join(["t.csv", *options]))
        for place, value in places.items():
            line = line.replace(place, value)
        return line

    def options(self, *more):
        keys = [word.split("=")[0] for word in more]
        return [*(word for word in OPTIONS if word.split("=")[0] not in keys), *more]

    def run_line(self, line, code=0, **more):
        done = subprocess.run(["sh", "-c", line], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env={**self.environment, **more})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def expect(self, *more, ranks=2):
        """Trains the run that the others must equal."""
        self.run_words(self.words("expected", *more, f"ranks={ranks}"))

    def assert_expected(self, run):
        self.assert_same_bytes(self.last_bytes(run), self.last_bytes("expected"))
