# SPDX-License-Identifier: Apache-2.0
"""A row of the table that compare.py prints: paired figures, their target, and whether they meet it."""
import dataclasses
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import measure  # noqa: E402


@dataclasses.dataclass
class Row:
    """A row of the table. Compared with the target: ours / theirs for rates, theirs / ours for times; ours if alone is
    set."""
    name: str
    work: str
    target: float | None  # None: no promise
    stretch: float | None = None
    unit: str = "images/CPU-s"
    times: bool = False    # less is better
    alone: bool = False    # theirs, if any, is only shown
    ours: list = dataclasses.field(default_factory=list)
    theirs: list = dataclasses.field(default_factory=list)
    note: str = ""
    missing: str = ""      # why there is no figure

    def ratios(self):
        pairs = zip(self.theirs, self.ours) if self.times else zip(self.ours, self.theirs)
        return [a / b if b else float("inf") for a, b in pairs]

    def evaluated(self):
        return self.ours if self.alone else self.ratios()

    def at_most(self):
        return self.alone and self.times

    def meets(self, value, limit):
        return value <= limit if self.at_most() else value >= limit

    def verdict(self):
        if self.target is None:
            return "no promise"
        low, high = measure.median_interval(self.evaluated())
        worst = high if self.at_most() else low
        if not self.meets(statistics.median(self.evaluated()), self.target):
            return "MISSED"
        if not self.meets(worst, self.target):
            return "met by the median, not by the whole interval"
        return "met, stretch too" if self.stretch is not None and self.meets(worst, self.stretch) else "met"

    def limit(self, value):
        return "-" if value is None else f"{'<=' if self.at_most() else '>='} {value:g}{'' if self.alone else 'x'}"

    def markdown(self):
        work = f"{self.work}, {self.note}" if self.note else self.work
        if self.missing:
            return f"| {work} | - | - | - | - | {self.limit(self.target)} | {self.limit(self.stretch)} | {self.missing} |"
        ratio = "-"
        if self.theirs:
            low, high = measure.median_interval(self.ratios())
            ratio = f"{statistics.median(self.ratios()):.2f} ({low:.2f} to {high:.2f})"
        return (f"| {work} | {figure(self.ours)} {self.unit} | {f'{figure(self.theirs)} {self.unit}' if self.theirs else '-'} | {ratio} | "
                f"{len(self.evaluated())} | {self.limit(self.target)} | {self.limit(self.stretch)} | {self.verdict()} |")


HEAD = "| work | ours | theirs | ratio | turns | at least / at most | stretch | |\n|---|---|---|---|---|---|---|---|"


def figure(values):
    """The median and its interval."""
    low, high = measure.median_interval(values)
    return f"{statistics.median(values):.4g} ({low:.4g} to {high:.4g})"
