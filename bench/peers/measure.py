# SPDX-License-Identifier: Apache-2.0
"""How the scripts of this folder measure: sides that take turns, the ratio's median and spread, child processes with their
peak memory, and what is printed. Without torch, and without packages of others: a child's peak memory counts what its
parent held when it began, so a parent that measures stays small.
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
    """Lowest and highest value between which the true median lies with 95 % certainty (sign test; Conover, "Practical
    Nonparametric Statistics", section 3.2). Below 6 values: the whole range, which is less certain."""
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
    """A promise and the paired figures that tell whether it holds. One line of the table at the end."""
    group: str     # which part of the bench
    what: str      # the work
    peer: str      # who else did it
    figure: str    # what is divided by what: "theirs / ours" or "ours / theirs"
    promise: float | None  # at least, or at most, by figure; None: shown without a promise
    ours: list     # one figure a turn
    theirs: list
    unit: str = "ms"
    note: str = ""   # how the peer was set up here
    short: str = ""  # the work's name in the short table; empty: the row is not in it
    commit: str = ""  # what was measured

    def key(self):
        """The same for what is measured anew."""
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
        far = low if self.at_least() else high
        if sign * statistics.median(self.ratios()) < sign * self.promise:
            return "FALLS SHORT"
        return "holds" if sign * far >= sign * self.promise else "holds by its median, not by the interval's far end"

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
        """Whatever the row's figure is: theirs / ours. What does not hold is said."""
        faster = dataclasses.replace(self, figure="theirs / ours")
        low, high = median_interval(faster.ratios())
        held = "" if self.promise is None or self.verdict() == "holds" else (
            f"; promised {self.promise if self.at_least() else 1 / self.promise:.3g}")
        return (f"| {self.short} | {rounded(self.ours, self.unit)} | {PEERS[self.peer]} {rounded(self.theirs, self.unit)} | "
                f"{statistics.median(faster.ratios()):.2f} ({low:.2f} to {high:.2f}){held} |")


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
    """Prints a row; where into is a file, puts it there for the table at the end, in place of an earlier one of the same work."""
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
    """The rows that tell() put into a file, in Markdown: a few of them in short, then all."""
    rows = kept_rows(path)
    commits = collections.Counter(row.commit for row in rows)
    said = f"All of commit {rows[0].commit}." if len(commits) == 1 else (
        "NOT ONE MEASUREMENT: " + ", ".join(f"{count} rows of commit {name}" for name, count in commits.items()))
    return "\n".join([said, "", SHORT_HEAD, *(row.short_markdown() for row in rows if row.short), "",
                      HEAD, *(row.markdown() for row in rows)])


def in_turns(sides, pairs, doing=""):
    """sides: {name: callable that measures once}. All are called once a turn, the order turning round from one turn to the
    next; what they return is collected by name."""
    found = {name: [] for name in sides}
    for turn in range(pairs):
        if sys.stderr.isatty():  # not into a record
            print(f"\r{doing} {turn + 1}/{pairs} ", end="\n" if turn == pairs - 1 else "", file=sys.stderr, flush=True)
        for name in list(sides) if turn % 2 == 0 else list(sides)[::-1]:
            found[name].append(sides[name]())
    return found


@dataclasses.dataclass
class Child:
    """What a child process did."""
    seconds: float   # from before exec to its end
    cpu: float       # seconds of CPU time, of processes that it waited for too
    resident: int | None  # its peak, bytes; of processes that it started only the largest counts; None if it cannot be told
    lines: list      # (seconds since before exec, line) of its standard output


def run_child(command, environment=None, folder=None):
    """Runs a command to its end. RuntimeError, with what it said, if it fails."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # the kernel counts it as the child's until it calls exec
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:  # a pipe would fill up: nobody reads it meanwhile
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=said, text=True, cwd=folder,
                              env=environment) as process:
            lines = [(time.perf_counter() - begin, line.rstrip("\n")) for line in process.stdout]
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{said.read()[-2000:]}")
    return Child(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime,
                 usage.ru_maxrss * 1024 if usage.ru_maxrss > own else None, lines)


class Worker:
    """A process that measures on demand: a line of JSON in, a line out. It sleeps while others take their turn."""

    def __init__(self, command, environment=None, said=None):
        """said: a file for its standard error."""
        self.command = shlex.join(map(str, command))
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, stderr=said)

    def begin(self, **question):
        """Asks without waiting, so that others can work at the same time; answer() has the answer."""
        try:
            print(json.dumps(question), file=self.process.stdin, flush=True)
        except BrokenPipeError:  # it ended: answer() says so
            pass

    def answer(self, patience=None):
        """RuntimeError if it ended, or did not answer within so many seconds."""
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
    """The photographs of a folder of class folders, each several times by links, in a few made-up classes of a new folder."""
    for number, image in enumerate(sorted(photographs.glob("*/*"))):
        into = folder / f"class{number % classes}"
        into.mkdir(parents=True, exist_ok=True)
        for copy in range(links):
            (into / f"{number}-{copy}{image.suffix}").symlink_to(image.resolve())
    return folder


def load():
    return f"load {os.getloadavg()[0]:.2f}"


def commit():
    """What is measured: the commit, with -dirty where it was changed."""
    program = pathlib.Path(__file__).resolve().parents[1] / "commit"
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def tell_machine(program, packages=()):
    """The machine and the versions of all that is measured, without importing any of it."""
    from importlib import metadata
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"{cpu}, {len(os.sched_getaffinity(0))} cores, {platform.system()} {platform.release()}, {load()} at the start")
    print(", ".join([version.splitlines()[0], f"python {platform.python_version()}",
                     *(f"{name} {metadata.version(name)}" for name in packages)]), flush=True)
