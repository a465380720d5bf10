# SPDX-License-Identifier: Apache-2.0
"""How the scripts of this folder measure: sides that take turns, median and spread of the ratio, child processes with
their peak memory, and the tables. Imports neither torch nor other packages: a child's peak memory starts with the
memory of its parent, so the measuring parent must stay small.
"""
import collections
import contextlib
import dataclasses
import json
import math
import os
import platform
import resource
import pathlib
import select
import shlex
import statistics
import subprocess
import sys
import tempfile
import time


def median_interval(values):
    """The 95 % interval of the median (sign test; Conover, "Practical Nonparametric Statistics", section 3.2). Below 6
    values: the whole range, which is less certain."""
    ordered, n = sorted(values), len(values)
    cut, below, probability = 0, 0.0, 0.5 ** n
    for k in range(n // 2):
        below += probability
        if 2 * below > 0.05:
            break
        cut, probability = k + 1, probability * (n - k) / (k + 1)
    cut = max(1, cut)
    return ordered[cut - 1], ordered[n - cut]


@dataclasses.dataclass
class Row:
    """A promise and the paired figures that show whether it is met. One row of the table at the end."""
    group: str     # part of the benchmark
    what: str      # the work
    peer: str      # the other system
    figure: str    # the ratio: "theirs / ours" or "ours / theirs"
    promise: float | None  # for theirs / ours at least this, for ours / theirs at most; None: no promise
    ours: list     # one figure per turn
    theirs: list
    unit: str = "ms"
    note: str = ""   # how the peer was set up here
    short: str = ""  # the work's name in the short table; empty: not in the short table
    commit: str = ""  # the measured commit

    def key(self):
        """The same if the same work is measured again."""
        return self.group, self.what, self.peer

    def against(self):
        return f"{self.peer}, {self.note}" if self.note else self.peer

    def ratios(self):
        pairs = zip(self.theirs, self.ours) if self.figure == "theirs / ours" else zip(self.ours, self.theirs)
        return [a / b for a, b in pairs]

    def at_least(self):
        return self.figure == "theirs / ours"

    def verdict(self):
        if self.promise is None:
            return "no promise"
        sign = 1 if self.at_least() else -1
        low, high = median_interval(self.ratios())
        worst = low if self.at_least() else high
        if sign * statistics.median(self.ratios()) < sign * self.promise:
            return "MISSED"
        return "met" if sign * worst >= sign * self.promise else "met by the median, not by the whole interval"

    def promised(self):
        return "-" if self.promise is None else f"{'>=' if self.at_least() else '<='} {self.promise:g}"

    def spread(self):
        low, high = median_interval(self.ratios())
        return f"{low:.3f} to {high:.3f}"

    def text(self):
        ratios = self.ratios()
        return (f"{self.what}, against {self.against()}: {self.figure} {statistics.median(ratios):.3f} [{self.spread()}] "
                f"(range {min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} pairs); ours {quantity(self.ours, self.unit)}, "
                f"theirs {quantity(self.theirs, self.unit)}; promise {self.promised()}: {self.verdict()}")

    def markdown(self):
        return (f"| {self.what} | {self.against()} | {statistics.median(self.ours):.4g} {self.unit} | "
                f"{statistics.median(self.theirs):.4g} {self.unit} | {self.figure} | {statistics.median(self.ratios()):.2f} | "
                f"{self.spread()} | {self.promised()} | {self.verdict()} |")

    def short_markdown(self):
        """Always theirs / ours. Adds the promise if it is not met."""
        faster = dataclasses.replace(self, figure="theirs / ours")
        low, high = median_interval(faster.ratios())
        promise = "" if self.promise is None or self.verdict() == "met" else (
            f"; promised {self.promise if self.at_least() else 1 / self.promise:.3g}")
        return (f"| {self.short} | {rounded(self.ours, self.unit)} | {PEERS[self.peer]} {rounded(self.theirs, self.unit)} | "
                f"{statistics.median(faster.ratios()):.2f} ({low:.2f} to {high:.2f}){promise} |")


PEERS = {"pytorch": "PyTorch", "pytorch-fused": "PyTorch", "accelerate": "accelerate", "lightning": "Lightning",
         "pytorch, freed memory kept": "PyTorch"}
SHORT_HEAD = "| what | Stoker | they | theirs / ours |\n|---|---|---|---|"
HEAD = ("| what | against | ours | theirs | ratio | median | spread | promise | |\n"
        "|---|---|---|---|---|---|---|---|---|")


def rounded(values, unit):
    middle = statistics.median(values)
    return f"{middle:.{max(0, 2 - math.floor(math.log10(middle)))}f} {unit}"  # three figures


def quantity(values, unit):
    return f"{statistics.median(values):.4g} {unit} ({min(values):.4g} to {max(values):.4g})"


def tell(row, into=None):
    """Prints a row. into: a file that keeps the rows for the table; the row replaces an earlier one of the same
    work."""
    print(row.text(), flush=True)
    if into:
        rows = {each.key(): each for each in kept_rows(into)} | {row.key(): row}
        part = pathlib.Path(f"{into}.part")
        part.write_text("".join(json.dumps(dataclasses.asdict(each)) + "\n" for each in rows.values()), encoding="utf-8")
        part.replace(into)


def kept_rows(path):
    path = pathlib.Path(path)
    return [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def table(path):
    """The rows that tell() wrote to a file, in Markdown: the short table, then all rows."""
    rows = kept_rows(path)
    commits = collections.Counter(row.commit for row in rows)
    origin = f"All of commit {rows[0].commit}." if len(commits) == 1 else (
        "NOT ONE MEASUREMENT: " + ", ".join(f"{count} rows of commit {name}" for name, count in commits.items()))
    return "\n".join([origin, "", SHORT_HEAD, *(row.short_markdown() for row in rows if row.short), "",
                      HEAD, *(row.markdown() for row in rows)])


def in_turns(sides, pairs, doing=""):
    """sides: {name: callable that measures once}. All are called once per turn, and the order alternates. Returns
    {name: list of what the calls returned}."""
    found = {name: [] for name in sides}
    for turn in range(pairs):
        if sys.stderr.isatty():  # keeps progress out of recorded output
            print(f"\r{doing} {turn + 1}/{pairs} ", end="\n" if turn == pairs - 1 else "", file=sys.stderr, flush=True)
        for name in list(sides) if turn % 2 == 0 else list(sides)[::-1]:
            found[name].append(sides[name]())
    return found


# KiB. The kernel counts a process's pages for each CPU and adds them up in batches of 32 or more (lib/percpu_counter.c):
# 128 KiB for each CPU that the process ran on. This is room for eight.
COUNTED_LATE = 1024


@dataclasses.dataclass
class Child:
    """The figures of a child process."""
    seconds: float   # from before exec to its end
    cpu: float       # seconds of CPU time, including processes that it waited for
    resident: int | None  # peak in bytes, of the largest process among it and its children; None if unknown
    lines: list      # (seconds since before exec, line) of its standard output


def run_child(command, environment=None, folder=None):
    """Runs a command to its end. RuntimeError with its error output if it fails."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:  # a pipe would fill up: nobody reads it before the end
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=said, text=True, cwd=folder,
                              env=environment) as process:
            # Until it called exec, which is before this line, the kernel counts our peak as the child's.
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            lines = [(time.perf_counter() - begin, line.rstrip("\n")) for line in process.stdout]
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{said.read()[-2000:]}")
    return Child(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime,
                 usage.ru_maxrss * 1024 if usage.ru_maxrss > own + COUNTED_LATE else None, lines)


class Worker:
    """A process that measures on demand: one line of JSON in, one line out. It sleeps while others take their turn."""

    def __init__(self, command, environment=None, said=None):
        """said: a file for its standard error."""
        self.command = shlex.join(map(str, command))
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, stderr=said)

    def begin(self, **question):
        """Asks without waiting, so that others can work at the same time; answer() returns the answer."""
        try:
            print(json.dumps(question), file=self.process.stdin, flush=True)
        except BrokenPipeError:  # it ended: answer() raises the error
            pass

    def answer(self, patience=None):
        """RuntimeError if it ended, or did not answer within patience (seconds)."""
        if not select.select([self.process.stdout], [], [], patience)[0]:
            raise RuntimeError(f"{self.command} did not answer in {patience:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.command} ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, **question):
        self.begin(**question)
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def linked_photographs(photographs, folder, links=4, classes=10):
    """Makes a folder with several links to each photograph of a folder of class folders, in a few made-up classes."""
    for number, image in enumerate(sorted(photographs.glob("*/*"))):
        into = folder / f"class{number % classes}"
        into.mkdir(parents=True, exist_ok=True)
        for copy in range(links):
            (into / f"{number}-{copy}{image.suffix}").symlink_to(image.resolve())
    return folder


def load():
    return f"load {os.getloadavg()[0]:.2f}"


def commit():
    """The measured commit, with -dirty if it was changed."""
    program = pathlib.Path(__file__).resolve().parents[1] / "commit"
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def tell_machine(program, packages=()):
    """Prints the machine and the versions of all measured systems, without importing them."""
    from importlib import metadata
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"{cpu}, {len(os.sched_getaffinity(0))} cores, {platform.system()} {platform.release()}, {load()} at the start")
    print(", ".join([version.splitlines()[0], f"python {platform.python_version()}",
                     *(f"{name} {metadata.version(name)}" for name in packages)]), flush=True)
