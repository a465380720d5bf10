#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Stoker's loader with other systems, in turns. Prints a table: work, our figure, theirs, ratio and target.

    bench/data/compare.py BUILD [--data FOLDER] [--ffcv PATH] [--quick] [ROW...]

BUILD: a build folder with loader_bench and the command line. --data: a folder with imagenet-sample/ and cifar10/; rows
without their data print a skip message. --ffcv: PYTHONPATH of FFCV's own environment. ROW: only these rows. Started by
bench/data/run. If a side dies, its rows and the run fail, but the other rows are still measured. Nothing here imports
torch: see ../peers/measure.py.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import folders  # noqa: E402
import jpeg  # noqa: E402
import measure  # noqa: E402
import starved  # noqa: E402
from row import HEAD, Row  # noqa: E402

PER_CPU = "per_cpu_second"


class Missing(Exception):
    """A side has no figure, for a reason that is not a failure."""


class Bench:
    def __init__(self, arguments, work):
        self.build, self.work = pathlib.Path(arguments.build).absolute(), work
        self.data = pathlib.Path(arguments.data).absolute() if arguments.data else None
        self.ffcv_path, self.quick, self.rows = arguments.ffcv, arguments.quick, arguments.rows
        self.pairs, self.seconds = (2, 0.5) if self.quick else (7, 5)
        self.cores = len(os.sched_getaffinity(0))
        self.versions, self.died = {}, []

    def fails(self, row, error):
        row.missing = "FAILED"
        self.died.append(f"{row.name}: {error}")
        print(f"FAILED: {self.died[-1]}", flush=True)

    def ours(self, mode, **words):
        """The figures of loader_bench; Missing if it gives a reason instead."""
        return self.answer([self.build / "bench" / "loader_bench", f"mode={mode}", *(f"{key}={value}" for key, value in words.items())])

    def theirs(self, peer, **options):
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        environment = os.environ | ({"PYTHONPATH": self.ffcv_path} if peer == "ffcv" else {})
        return self.answer([sys.executable, HERE / "peers.py", peer, *words], environment)

    def answer(self, command, environment=None):
        child = measure.run_child(command, environment)
        try:
            found = json.loads(child.lines[-1][1])
            if not isinstance(found, dict):
                raise ValueError("not an object")
        except (IndexError, ValueError) as error:
            raise RuntimeError(f"{' '.join(map(str, command))} gave no figures ({error})") from error
        for word in ("waits", "skipped"):
            if word in found:
                raise Missing(f"{word.upper() if word == 'skipped' else word}: {found[word]}")
        self.versions |= found.pop("versions", {})
        return found

    def folder(self, name):
        if self.data and (self.data / name).exists():
            return self.data / name
        raise Missing(f"SKIPPED: needs {name} (STOKER_DATA=FOLDER that has it)")


def figures_of(found, key):
    """One figure per turn; an error if a turn lacks it or it is not a finite number."""
    values = [each[key] for each in found]
    if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in values):
        raise RuntimeError(f"{key} is not a number: {values}")
    return values


def loader_rate(bench, images, name, count, seconds):
    """name: "loader" with count threads, "known rows" for the same in later epochs, or a peer with count workers."""
    if name in ("loader", "known rows"):
        return bench.ours("loader", data=images, threads=count, seconds=seconds, **({} if name == "loader" else {"rows": 8}))
    return bench.theirs(name, images=images, workers=count, seconds=seconds, **({"formats": bench.work} if name == "ffcv" else {}))


def best_ways(bench, rows, images):
    """The number of threads or workers with the best rate per CPU-second, of each system. If a peer dies, its row
    fails."""
    ways = {"loader": sorted({1, bench.cores})} | {name: (1, 2) if name == "ffcv" else (0, 1, 2)
                                                   for name in ("pil", "tensor", "ffcv") if name in rows}
    best = {}
    for name, counts in ways.items():
        try:
            rates = {count: loader_rate(bench, images, name, count, 0.1 if bench.quick else 3)[PER_CPU]
                     for count in (counts[:1] if bench.quick else counts)}
        except RuntimeError as error:
            if name == "loader":
                raise
            bench.fails(rows.pop(name), error)
            continue
        best[name] = max(rates, key=rates.get)
        print(f"tried: {name}, images per CPU-second: " + ", ".join(f"{rate:.0f} with {n}" for n, rate in rates.items()), flush=True)
    return best


def print_stages(what, turns):
    """Where our threads spend their wall time; only useful on a quiet machine."""
    names = list(dict.fromkeys(name for turn in turns for name in turn["stage_ms"]))
    stages = {name: statistics.median(turn["stage_ms"].get(name, 0) for turn in turns) for name in names}
    rate = statistics.median(turn[PER_CPU] for turn in turns)
    print(f"our loader, {what}: {rate:.0f} images per CPU-second; ms per image: "
          + ", ".join(f"{name} {value:.3f}" for name, value in stages.items()), flush=True)


def images(bench, rows):
    """From JPEG files to batches."""
    images = bench.folder("imagenet-sample")
    if "ffcv" in rows and not bench.ffcv_path:
        rows.pop("ffcv").missing = "SKIPPED: FFCV is not installed: see above"
    if "threads" in rows and bench.cores < 2:
        rows.pop("threads").missing = "SKIPPED: needs 2 cores"
    if not rows:
        return
    best = best_ways(bench, rows, images)
    later = ("known rows", best["loader"])
    ways = {*best.items(), later, *((("loader", 1), ("loader", 2)) if "threads" in rows else ())}
    sides = {way: lambda way=way: loader_rate(bench, images, *way, bench.seconds) for way in sorted(ways)}
    if "decode" in rows:
        sides["decode"] = lambda: bench.ours("decode", data=images, seconds=bench.seconds)
    found = measure.in_turns(sides, bench.pairs, "images")
    print_stages("first epoch", found["loader", best["loader"]])
    print_stages("known rows", found[later])
    rate_later = figures_of(found[later], PER_CPU)
    for name in rows.keys() - {"threads"}:
        theirs = "decode" if name == "decode" else (name, best[name])
        rows[name].ours, rows[name].theirs = figures_of(found["loader", best["loader"]], PER_CPU), figures_of(found[theirs], PER_CPU)
        rows[name].note = f"our threads: {best['loader']}" + (
            "" if name == "decode" else f", their {'threads' if name == 'ffcv' else 'workers'}: {best[name]}")
        ratio = statistics.median(ours / other for ours, other in zip(rate_later, rows[name].theirs))
        rows[name].note += f"; with known rows {ratio:.2f}"
    if "threads" in rows:
        rows["threads"].ours, rows["threads"].theirs = (figures_of(found["loader", count], "per_second") for count in (2, 1))


def resize(bench, rows):
    """Both sides in one process, block by block."""
    row = rows["resize"]
    if not {"avx512vbmi", "avx512_vnni"} <= jpeg.cpu_flags():
        row.target, row.stretch, row.note = 3.4, 4.5, "no AVX-512 VBMI and VNNI here: AVX2's target"
    found = [bench.ours("resize", seconds=bench.seconds / 2) for _ in range(bench.pairs)]
    row.ours, row.theirs = figures_of(found, "ms"), figures_of(found, "twin_ms")


def ram(bench, rows):
    """Images in memory: ours with crop and flip, theirs without, and a bare gather in our process."""
    words = {"data": bench.folder("cifar10"), "seconds": bench.seconds / 2} | ({"limit": 2000} if bench.quick else {})
    bench.ours("ram", **words | {"limit": 512, "seconds": 0.1})  # stop here if this build has no such source
    sides = {"ours": lambda: bench.ours("ram", **words)}
    if "ram" in rows:
        sides["theirs"] = lambda: bench.theirs("cifar", seconds=bench.seconds)
    found = measure.in_turns(sides, bench.pairs, "ram")
    for name, theirs in (("ram", figures_of(found.get("theirs", []), PER_CPU)), ("gather", figures_of(found["ours"], "gather_per_cpu_second"))):
        if name in rows:
            rows[name].ours, rows[name].theirs = figures_of(found["ours"], PER_CPU), theirs


def both(bench, row, key, ours, theirs=None):
    found = measure.in_turns({"ours": ours} | ({"theirs": theirs} if theirs else {}), bench.pairs, row.name)
    row.ours, row.theirs = figures_of(found["ours"], key), figures_of(found.get("theirs", []), "seconds" if row.unit == "s" else key)


def table(bench, rows):
    """Table rows in memory; one thread on both sides."""
    both(bench, rows["table"], PER_CPU, lambda: bench.ours("table", seconds=bench.seconds / 2),
         lambda: bench.theirs("table", seconds=bench.seconds))


def first(bench, rows):
    """From opening the folder, which has an index, to the first batch; theirs without imports."""
    images = bench.folder("imagenet-sample")
    both(bench, rows["first"], "seconds", lambda: bench.ours("first", data=images, cache=bench.work / "cache", threads=bench.cores),
         lambda: bench.theirs("first", images=images))


def reopen(bench, rows):
    """Many hard links to a few images, in 1,000 folders: with an index, and without. Each turn has a new cache."""
    count, row = 12_000 if bench.quick else 300_000, rows["reopen"]
    folder = folders.hard_links(bench.folder("imagenet-sample"), bench.work / "links", count)
    time.sleep(3)  # an index does not trust a change that is less than two seconds old
    found = {"scan": [], "index": []}
    for turn in range(bench.pairs):
        cache = bench.work / f"cache-{turn}"
        for name, turns in found.items():
            turns.append(bench.ours("open", data=folder, cache=cache))
            if turns[-1]["images"] != count:
                raise RuntimeError(f"{turns[-1]['images']} of {count} images ({name})")
    row.ours, row.theirs = figures_of(found["index"], "cpu_seconds"), figures_of(found["scan"], "cpu_seconds")
    memory = {name: statistics.median(figures_of(turns, "mb")) for name, turns in found.items()}
    row.note = f"{count:,} files; memory of the opened folder: {memory['scan']:.1f} MB, with the index {memory['index']:.1f} MB"


def far(bench, rows):
    """Theirs resumes after 1,500 batches of a million samples."""
    both(bench, rows["far"], "seconds", lambda: bench.ours("far"), lambda: bench.theirs("resume"))


def memory(bench, rows):
    """Includes the list of samples."""
    words = {"entries": 10 ** 6} if bench.quick else {}
    both(bench, rows["memory"], "mb", lambda: bench.ours("memory", data=bench.folder("imagenet-sample"), **words))
    if bench.quick:
        rows["memory"].note = "QUICK: only 1e6 entries"


def boundary(bench, rows):
    """How much longer the first batch of an epoch takes than other batches."""
    images = bench.folder("imagenet-sample")
    both(bench, rows["boundary"], "batches", lambda: bench.ours("boundary", data=images, threads=bench.cores, seconds=bench.seconds))


def verdict(bench, rows):
    """Whether the loader names slowed-down stages. Its sentences are printed, also those for two stages slowed down at
    once."""
    images, seconds = bench.folder("imagenet-sample"), 0.3 if bench.quick else 3
    turns = [bench.ours("verdict", data=images, png=bench.work / "png", seconds=seconds) for _ in range(1 if bench.quick else 2)]
    for turn in turns:
        for stage, words in turn["named"].items():
            print(f"slowed down: {stage}: {words}", flush=True)
        two = turn["two_at_once"]
        for stages, words in two["named"].items():
            print(f"two slowed down: {stages}: {words}", flush=True)
        print(f"two slowed down at once: right in {two['right']} of {two['of']}", flush=True)
    rows["verdict"].ours = figures_of(turns, "right")


def forecast(bench, rows):
    """How far the loader's forecasts of the rate with more cores or threads are off."""
    if bench.cores < 2:
        raise Missing("SKIPPED: needs 2 cores")
    images, seconds = bench.folder("imagenet-sample"), 0.3 if bench.quick else 3
    turns = [bench.ours("forecast", data=images, seconds=seconds) for _ in range(1 if bench.quick else 5)]
    print("forecast against measured:", ", ".join(f"{100 * t['cores_off']:+.0f} % (cores) {100 * t['sleeping_off']:+.0f} % (sleeping)" for t in turns))
    off = (figures_of(turns, "cores_off"), figures_of(turns, "sleeping_off"))
    rows["forecast"].ours = [100 * max(abs(cores), abs(sleeping)) for cores, sleeping in zip(*off)]


def autotune(bench, rows):
    """How the number of threads that the loader finds compares with the best fixed number. One process searches, then
    takes all turns."""
    if bench.quick:
        raise Missing("SKIPPED: QUICK (it searches for 20 s)")
    for row in rows.values():
        load, turns = row.name.partition("-")[2], 5
        found = bench.ours("autotune", data=bench.folder("imagenet-sample"), load=load, cores=bench.cores, turns=turns, seconds=1.5)
        print(f"autotune, {load}: {found['auto']:.0f} samples/s on {found['threads']} threads; best {found['best']:.0f} with {found['way']}", flush=True)
        if len(found["shares"]) != turns:
            raise RuntimeError(f"{len(found['shares'])} turns instead of {turns}")
        row.ours = figures_of([{"share": share} for share in found["shares"]], "share")


def corrupt(bench, rows):
    """The same images, undamaged and with 1 % damaged. Fails if the loader missed the damage, or found some in the
    undamaged folder."""
    images, count = bench.folder("imagenet-sample"), 200 if bench.quick else 1000
    made = {name: folders.make(images, bench.work / name, count, name == "damaged") for name in ("damaged", "whole")}
    bounds = {"damaged": folders.bad_among(count), "whole": (0, 0)}

    def measured(name):
        lost = folders.mend(images, made[name], count) if name == "damaged" else {}
        found = bench.ours("loader", data=made[name], replace=1, seconds=min(bench.seconds, 2), **lost)
        least, most = bounds[name]
        if not least <= found["bad"] <= most:
            raise RuntimeError(f"{found['bad']} bad images in the {name} folder, not {least} to {most}")
        return found
    found = measure.in_turns({name: lambda name=name: measured(name) for name in made}, 2 if bench.quick else 31, "corrupt")
    rows["corrupt"].ours, rows["corrupt"].theirs = figures_of(found["damaged"], PER_CPU), figures_of(found["whole"], PER_CPU)


def copies(bench, rows):
    """Both sides in one process."""
    found = [bench.ours("copies", seconds=bench.seconds / 2) for _ in range(bench.pairs)]
    rows["copies"].ours, rows["copies"].theirs = figures_of(found, "gb_per_second"), figures_of(found, "memcpy_gb_per_second")


def resident(bench, rows):
    """Samples per second from a data set on the device."""
    both(bench, rows["resident"], "per_second", lambda: bench.ours("resident", data=bench.folder("cifar10"), seconds=bench.seconds))


def starved_for_data(bench, rows):
    """The share of a run's time spent waiting for data."""
    bench.ours("copies", seconds=0.1)  # stop here without a GPU
    if bench.cores < 16:
        raise Missing(f"SKIPPED: needs 16 cores, this machine has {bench.cores}")
    images = bench.folder("imagenet-sample")

    def waited():
        with tempfile.TemporaryDirectory(dir=bench.work) as folder:
            return starved.waited([bench.build / "apps" / "stoker" / "stoker"], images, pathlib.Path(folder), 20 if bench.quick else 180)
    both(bench, rows["starved"], "percent", waited)


# Groups of rows that are measured together, with the target of each row.
GROUPS = (
    (images, [Row("pil", "JPEG files against DataLoader + PIL", 4.0, 5.0),
                Row("tensor", "JPEG files against DataLoader + tensor operations", 2.9, 3.6),
                Row("ffcv", "JPEG files against FFCV's JPEG mode (its own file)", 2.0, 2.5),
                Row("decode", "JPEG files against a bare full decode by libjpeg-turbo in our own process", 1.8, 2.25),
                Row("threads", "two loader threads against one", 1.8, 1.93, "images/s")]),
    *jpeg.GROUPS,
    (resize, [Row("resize", "one 320 x 320 image to 224 x 224 against a plain float twin", 4.5, 6.5, "ms", times=True)]),
    (ram, [Row("ram", "CIFAR-10 in RAM, crop and flip, against TensorDataset without", 7, 12, "images/CPU-s"),
           Row("gather", "the same against a bare memcpy gather", 0.8, 0.9, "images/CPU-s")]),
    (table, [Row("table", "table of 48k rows, batches of 512, against a DataFrame's Dataset", 200, 1000, "rows/CPU-s")]),
    (first, [Row("first", "first batch from an indexed folder", 0.15, 0.05, "s", times=True, alone=True)]),
    (reopen, [Row("reopen", "opening a folder with its index against scanning it", 20, None, "CPU-s", times=True)]),
    (memory, [Row("memory", "anonymous memory beyond the ring, 1e8 entries", 64, 16, "MB", times=True, alone=True)]),
    (far, [Row("far", "starting at step 1e6 of 1e9 samples (theirs: after 1,500 batches)", 0.1, 0.001, "s", times=True, alone=True)]),
    (boundary, [Row("boundary", "epoch boundary beyond a usual batch", 1, 0.05, "batches", times=True, alone=True)]),
    (verdict, [Row("verdict", "slowed-down stages that it names, of 12", 12, None, "stages", alone=True)]),
    (forecast, [Row("forecast", "samples/s forecast for 2 cores and 8 sleeping threads, off by", 20, None, "%", times=True, alone=True)]),
    *((autotune, [Row(f"autotune-{load}", f"threads it finds by itself against the best fixed: {what}", 0.95, None, "of the best", alone=True)])
      for load, what in (("cheap", "images kept decoded"), ("decode", "JPEG files"), ("disk", "reads that sleep 10 ms"),
                         ("consumer", "a consumer of 30 ms per batch"))),
    (corrupt, [Row("corrupt", "1 % of the JPEG files damaged against none", 0.98)]),
    (copies, [Row("copies", "pinned copies to a GPU against plain memcpy", 0.8, None, "GB/s")]),
    (resident, [Row("resident", "CIFAR-10 on the GPU: crop, flip, normalise", 1e8, None, "samples/s", alone=True)]),
    (starved_for_data, [Row("starved", "ResNet-50 bf16 waiting for data, 16 cores", 1, None, "%", times=True, alone=True)]),
)
NAMES = [row.name for _, rows in GROUPS for row in rows]


def measured(bench):
    """The rows of the table; each is printed as soon as it is measured."""
    shown = []
    for group, rows in GROUPS:
        wanted = {row.name: row for row in rows if row.name in bench.rows}
        if not wanted:
            continue
        try:
            group(bench, dict(wanted))
        except Missing as missing:
            for row in wanted.values():
                row.missing = row.missing or str(missing)
        except (RuntimeError, OSError, LookupError) as error:
            for row in wanted.values():
                if not row.missing:
                    bench.fails(row, f"{type(error).__name__}: {error}")
        for row in wanted.values():
            print(row.markdown(), flush=True)
        shown += wanted.values()
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(NAMES))
    parser.add_argument("--data")
    parser.add_argument("--ffcv", default="", metavar="PATH")
    parser.add_argument("--quick", action="store_true", help="2 turns and less work: checks that it runs, proves nothing")
    arguments = parser.parse_intermixed_args()
    groups = {name.partition("-")[0] for name in NAMES}
    if unknown := set(arguments.rows) - set(NAMES) - groups:
        parser.error(f"no row {', '.join(sorted(unknown))}; the rows are {', '.join(NAMES)}")
    arguments.rows = [name for name in NAMES if {name, name.partition("-")[0]} & set(arguments.rows)] if arguments.rows else NAMES
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        measure.tell_machine(bench.build / "apps" / "stoker" / "stoker")
        print(f"commit {measure.commit()}{'; QUICK: checks that it runs, proves nothing' if bench.quick else ''}\n", flush=True)
        shown = measured(bench)
    print(f"\nCompared with {', '.join(f'{name} {version}' for name, version in sorted(bench.versions.items())) or 'nobody'}. Medians; the "
          f"column turns says of how many. In brackets the 95 % interval (below 6 turns: the range). {measure.load()} at the end\n\n{HEAD}")
    print("\n".join(row.markdown() for row in shown), flush=True)
    if bench.died:
        sys.exit("bench/data: FAILED: " + "; ".join(bench.died))


if __name__ == "__main__":
    main()
