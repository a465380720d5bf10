# SPDX-License-Identifier: Apache-2.0
"""A run folder written by the sinks themselves (tests/io/written_run.cpp), for tests that read it with the libraries
people use. Import it before those libraries: it puts them on the path, or skips the test with a message."""
import os
import struct
import subprocess
import zlib

from packages import PACKAGES  # noqa: F401

WRITER = os.environ["STOKER_WRITTEN_RUN"]


class WrittenRun:
    """One session; the constructor returns when its steps are written and the writer waits."""

    def __init__(self, folder, first, last, total=None, *logs, **variables):
        numbers = [str(number) for number in (first, last, total or last)]
        self.process = subprocess.Popen([WRITER, folder, *numbers, *logs], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, **variables})
        if self.process.stdout.readline() != "written\n":
            raise RuntimeError(f"{WRITER} ended with {self.process.wait()}")

    def end(self):
        if self.process.poll() is None:
            self.process.communicate("end\n")
        assert self.process.returncode == 0, self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.communicate()


def png(width, height, grey):
    """An image of one grey value, with the few chunks that a PNG needs."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes([grey]) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
