# SPDX-License-Identifier: Apache-2.0
"""Wrong use of several ranks, started by their variables as on two nodes: each rank ends at once, and says why."""
import pathlib
import re
import socket
import subprocess
import time
import unittest

from ranks_test import ENVIRONMENT, Ranks, STOKER


class WrongRanks(Ranks):
    def setUp(self):
        super().setUp()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]

    def start_rank(self, rank, ranks, *more, data="t.csv", program=STOKER, **variables):
        words = self.words("run", "steps=400", *more, "--quiet")
        words[0], words[2] = program, data
        place = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port)}
        child = subprocess.Popen(words, cwd=self.folder, env={**ENVIRONMENT, **place, **variables}, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (child.kill(), child.communicate()))
        return child

    def assert_end(self, children, code, *texts):
        """Each rank has the code, and its text, or the one text of all."""
        end = time.monotonic() + 60  # the engine itself would wait five minutes for a rank that does not come
        for number, child in enumerate(children):
            out, err = child.communicate(timeout=max(1, end - time.monotonic()))
            self.assertEqual(child.returncode, code, out + err)
            self.assertIn(texts[min(number, len(texts) - 1)], err)

    def test_two_processes_with_one_rank(self):
        self.assert_end([self.start_rank(rank, 3) for rank in (0, 1, 1)], 2, "two processes are rank 1 of 3")

    def test_different_numbers_of_ranks(self):
        for first, second in ((2, 3), (3, 2)):
            self.assert_end([self.start_rank(0, first), self.start_rank(1, second)], 2,
                            f"rank 0 was started as one of {first} ranks, but rank 1 as one of {second}",
                            f"rank 1 was started as one of {second} ranks, but rank 0 as one of {first}")

    def test_a_rank_without_a_network(self):
        self.assert_end([self.start_rank(0, 2), self.start_rank(1, 2, GLOO_SOCKET_IFNAME="no-such0")], 2,
                        "rank 1 of 2 has no network to the others")

    def test_an_unknown_host(self):
        self.assert_end([self.start_rank(rank, 2, MASTER_ADDR="host.invalid") for rank in (0, 1)], 2, "host.invalid")

    def test_a_batch_that_is_smaller_than_the_ranks(self):
        self.assert_end([self.start_rank(rank, 2, "batch=1") for rank in (0, 1)], 2, "too small for 2 ranks")

    def test_data_that_one_node_lacks(self):
        for lacks in (0, 1):
            files = ["t.csv", "t.csv"]
            files[lacks] = "nothing.csv"
            self.assert_end([self.start_rank(rank, 2, data=files[rank]) for rank in (0, 1)], 65, "nothing.csv")

    def test_other_options(self):
        self.assert_end([self.start_rank(0, 2), self.start_rank(1, 2, "lr=0.5")], 2, "rank 1 failed", "lr=0.5")

    def test_another_version(self):
        """A copy of the program whose bytes say so."""
        number = re.search(rb"\d+\.\d+\.\d+", subprocess.run([STOKER, "--version"], capture_output=True).stdout).group()
        program = pathlib.Path(STOKER).read_bytes()
        self.assertIn(number, program)
        other = self.folder / "stoker-9"
        other.write_bytes(program.replace(number, b"9" + number[1:]))
        other.chmod(0o755)
        self.assert_end([self.start_rank(0, 2), self.start_rank(1, 2, program=str(other))], 2, "rank 1 failed",
                        "the program is Stoker 9")

    def test_other_rows(self):
        rows = (self.folder / "t.csv").read_text().splitlines(keepends=True)
        (self.folder / "fewer.csv").write_text("".join(rows[:-100]))
        self.assert_end([self.start_rank(rank, 2, data=("t.csv", "fewer.csv")[rank]) for rank in (0, 1)], 2,
                        "rank 1 failed", "the data is")

    def test_a_port_that_is_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", self.port))
            taken.listen()
            self.assert_end([self.start_rank(0, 2)], 2, "check MASTER_ADDR and MASTER_PORT")

    def test_a_late_process_does_not_disturb_a_run(self):
        run = [self.start_rank(rank, 2) for rank in (0, 1)]
        self.wait_for_steps("run", 20)
        self.assert_end([self.start_rank(1, 2)], 2, "two processes are rank 1 of 2")
        self.assert_end(run, 0, "")


if __name__ == "__main__":
    unittest.main()
