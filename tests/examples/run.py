#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one example in a folder of its own and checks its output against independent results.

    run.py NAME PROGRAM
"""
import csv
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).resolve().parents[2] / "examples/data/fashion-mnist-6000.tar"
TEXTS = sorted((DATA.parents[2] / "docs").rglob("*.md"))
ENOUGH = 0.5  # the accuracy at which own_sink stops: five times guessing; it has 40 epochs to reach it
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[-+]\d+)?)"


class Wrong(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Wrong(text)


def figures(text, pattern):
    """The numbers of the only line that matches the pattern; # matches a number. Fails without such a line."""
    found = re.findall("^" + re.escape(pattern).replace(r"\#", NUMBER).replace("#", NUMBER) + "$", text, re.MULTILINE)
    check(len(found) == 1, f"expected one line like: {pattern}")
    return [float(each) for each in ([found[0]] if isinstance(found[0], str) else found[0])]


def within(value, low, high, what):
    check(low <= value <= high, f"{what} is {value}, expected {low} to {high}")


def beats_guessing(accuracy, classes, images):
    """The limit is the accuracy of guessing plus ten standard deviations of the binomial distribution. Guessing cannot
    reach it. The examples' accuracies differ between kinds of CPU, but are far above it."""
    guess = 1 / classes
    limit = guess + 10 * math.sqrt(guess * (1 - guess) / images)
    check(limit < accuracy <= 1, f"accuracy is {accuracy}; guessing gives {guess:.3f} and never exceeds {limit:.3f}")


def metrics(run):
    with open(run / "metrics.csv", newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


def test_metric(run, name):
    rows = [row for row in metrics(run) if row["kind"] == "eval" and row["split"] == "test" and row["metric"] == name]
    check(len(rows) == 1, f"metrics.csv has {len(rows)} test rows of {name}")
    return float(rows[0]["value"])


def own_module(text, folder):
    accuracy, _ = figures(text, "run: accuracy # on the test images after # steps")
    right, images = figures(text, "module: # of # test images correct with plain torch")
    check(images == 1000, "the sample has 1000 test images")
    # With other batches sums round differently, which may change a close decision.
    within(right - accuracy * images, -1.5, 1.5, "images that the module alone classifies correctly, minus the run's")
    beats_guessing(accuracy, 10, 1000)
    source = (DATA.parents[1] / "own_module.cpp").read_text(encoding="utf-8")
    glue = source.split("// glue begins\n")[1].split("  // glue ends\n")[0].splitlines()
    said = int(re.search(r'marked "glue": (\d+) lines', source)[1])
    check(len(glue) == said < 15, f"the glue has {len(glue)} lines, the example says {said} (less than 15 allowed)")


def own_dataset(text, folder):
    check("a source that starts at epoch 3, step 7 agrees with one that steps there: yes" in text, "positions")
    beats_guessing(figures(text, "accuracy on 1000 other images after 300 steps: #")[0], 3, 1000)


def own_everything(text, folder):
    loss, steps = figures(text, "loss # after # steps")
    check(loss < 0.1, f"the mean square is {loss}; always predicting the mean gives 0.5")
    run = folder / "runs/own-everything"
    for name in ("plan.json", "report.html", "metrics.csv", "checkpoints/best/weights.safetensors"):
        check((run / name).is_file(), f"the run has no {name}")
    check(steps == max(int(row["step"]) for row in metrics(run)), "the run ended at another step than metrics.csv")
    source = (DATA.parents[1] / "own_everything.cpp").read_text(encoding="utf-8")
    code = [line for line in source.splitlines() if line and not line.lstrip().startswith("//")]
    check(len(code) <= 40, f"the program has {len(code)} lines of code, the example says 40")


def survive_a_cap(text, _):
    """The same ten steps under three limits: the loss agrees, and it splits only where it must."""
    program = pathlib.Path(sys.argv[2])
    whole = subprocess.run([program, "1000"], check=True, capture_output=True, text=True).stdout
    small = subprocess.run([program, "12"], check=True, capture_output=True, text=True).stdout
    check("ran out of memory" not in whole, "it ran out of memory with 1000 MiB")
    losses = [figures(each, f"loss # after 10 steps; microbatches {microbatches}")[0]
              for each, microbatches in ((whole, ""), (text, "1:256"), (small, "1:64"))]
    within(max(losses) - min(losses), 0, 2e-4, "the spread of the losses")
    check("the same batch runs again with 1024" in text, "it does not tell what it survived")


def own_loss(text, folder):
    apart = figures(text, "largest difference of a weight after 20 steps, whole batches and parts of 7: #")[0]
    within(apart, 0, 2e-6, "what microbatches change")  # rounding of float32 sums; weights are around 0.05
    for step in (100, 200, 300, 400, 500):
        loss, labels, pixels = figures(text, f"step {step}: loss # = cross_entropy # + repainting #")
        within(loss - labels - pixels, -2e-4, 2e-4, "the loss minus its terms")
    beats_guessing(figures(text, "accuracy on 1000 test images: #")[0], 10, 1000)


def own_metric(text, folder):
    shown = figures(text, "test shelf_accuracy #")[0]
    confusion = json.loads((folder / "run/artifacts/confusion.json").read_text(encoding="utf-8"))
    shelves = {"shoes": ["ankle_boot", "sandal", "sneaker"], "above": ["coat", "pullover", "shirt", "t-shirt_top"]}
    shelf = {name: key for key, names in shelves.items() for name in names}
    labels = [shelf.get(name, name) for name in confusion["labels"]]
    cells = [(labels[i] == labels[j], count) for i, row in enumerate(confusion["values"]) for j, count in enumerate(row)]
    truth = sum(count for right, count in cells if right) / sum(count for _, count in cells)
    within(shown - truth, -5e-5, 5e-5, "the shelf accuracy minus that of the confusion matrix")
    check(abs(test_metric(folder / "run", "shelf_accuracy") - truth) < 1e-9, "metrics.csv has another shelf accuracy")
    check(truth > figures(text, "test accuracy #")[0], "a shelf should be easier to predict than a class")
    chosen = json.loads((folder / "run/checkpoints/best/info.json").read_text(encoding="utf-8"))["metric"]
    check("shelf_accuracy" in json.dumps(chosen), f"the best checkpoint was chosen by {chosen}")


def own_sink(text, folder):
    rows = metrics(folder / "run")
    lines = re.findall(rf"^after step (\d+): mean loss of (\d+) steps {NUMBER}, accuracy {NUMBER}$", text, re.MULTILINE)
    check(len(lines) >= 1, "the sink got no evaluation")
    first = 0
    for step, steps, mean, accuracy in lines:
        losses = [float(row["loss"]) for row in rows if row["kind"] == "step" and first < int(row["step"]) <= int(step)]
        check(len(losses) == int(steps), f"the sink got {steps} steps up to step {step}, metrics.csv has {len(losses)}")
        within(float(mean) - sum(losses) / len(losses), -2e-6, 2e-6, "the mean loss minus that of metrics.csv")
        first = int(step)
    accuracies = [float(accuracy) for *_, accuracy in lines]
    check(accuracies[-1] >= ENOUGH > max(accuracies[:-1], default=0), f"stopped at the wrong accuracy: {accuracies}")
    check("the run ended at step" in text and "good enough: stopped" in text, "the run was not stopped")
    ended = figures(text, "the run ended at step #: stopped")[0]
    check(ended == max(int(row["step"]) for row in rows), "the run ended at another step than metrics.csv")


def own_augmentation(text, folder):
    check(figures(text, "black pixels per image: # to #") == [64, 64], "each image must have a square of 8 x 8 pixels")
    # 100 squares leave a pixel in the middle white with probability (1 - 64/441)^100; corners are rarely covered.
    within(figures(text, "pixels of 784 that are black in some image: #")[0], 600, 783, "pixels covered by squares")
    check("the same epoch again: equal; the next epoch: different; another seed: different" in text, "draws")
    shown = figures(text, "test accuracy #")[0]
    beats_guessing(shown, 10, 1000)
    within(shown - test_metric(folder / "run", "accuracy"), -5e-5, 5e-5, "accuracy minus that of metrics.csv")


def loop_by_hand(text, folder):
    check("weights of the resumed and of the uninterrupted training: equal to the bit" in text, "resume")
    losses = [float(loss) for loss in re.findall(rf"^step 60: loss {NUMBER}$", text, re.MULTILINE)]
    check(len(losses) == 2 and losses[0] == losses[1], f"the last step's losses differ: {losses}")
    beats_guessing(figures(text, "test accuracy #")[0], 10, 1000)
    with open(folder / "run/last/weights.safetensors", "rb") as weights:
        header = json.loads(weights.read(struct.unpack("<Q", weights.read(8))[0]))
    check("fc.weight" in header and any(name.endswith("running_mean") for name in header), f"weights: {sorted(header)}")


def several_ranks(text, folder):
    check(text.count("2 ranks, test accuracy") == 1, "rank 0 alone speaks")
    last = figures(text, "step 60: loss #")[0]
    accuracy = figures(text, "2 ranks, test accuracy #")[0]
    beats_guessing(accuracy, 10, 1000)
    alone = subprocess.run([sys.argv[2], "1", str(DATA)], cwd=folder, capture_output=True, text=True, check=True).stdout
    within(figures(alone, "step 60: loss #")[0], last - 0.01, last + 0.01, "the last loss of one process")
    within(figures(alone, "1 ranks, test accuracy #")[0], accuracy - 0.01, accuracy + 0.01, "the accuracy of one process")


def fine_tuning(text, folder):
    check("the head is new and starts untrained" in text, "the message about the weights")
    scratch = figures(text, "from scratch: test accuracy #")[0]
    tuned = figures(text, "fine-tuned: test accuracy #")[0]
    check(tuned == round(test_metric(folder / "run/tuned", "accuracy"), 3), "metrics.csv has another accuracy")
    check(tuned > scratch, f"fine-tuning must help: {scratch} from scratch, {tuned} fine-tuned")


def gan(text, folder):
    lines = re.findall(rf"^step +(\d+) .* distance of means {NUMBER}$", text, re.MULTILINE)
    check([int(step) for step, _ in lines] == [1, 100, 200, 300, 400, 500, 600], f"steps shown: {lines}")
    first, last = float(lines[0][1]), float(lines[-1][1])
    check(last < 0.6 * first, f"generated images must get closer: {first} at first, {last} at last")


def packed_text(text, folder):
    lengths = []  # a paragraph includes the end of its last line, but not the empty lines after it
    for file in TEXTS:
        parts = re.split(b"\n\n+", file.read_bytes())
        lengths += [len(part) + 1 for part in parts[:-1]] + [len(parts[-1])]
    shown, tokens, longer, length = figures(text, "# paragraphs, # tokens, # longer than a sequence of #")
    check([shown, tokens, longer] == [len(lengths), sum(lengths), sum(each > length for each in lengths)],
          f"{len(lengths)} paragraphs, {sum(lengths)} bytes")
    alone, _ = figures(text, "one sequence per paragraph: # sequences, # % full")
    check(alone == sum(-(-each // length) for each in lengths), "sequences without packing")
    packed, full = figures(text, "packed: # sequences, # % full")
    check(full >= 99, "packed sequences must be nearly full")
    within(full - 100 * sum(lengths) / (packed * length), -0.006, 0.006, "the fill minus the computed fill")
    batches, budget, padding = figures(text, "in length buckets: # batches of at most # tokens, # % of them padding")
    check(batches * budget >= sum(lengths), "too few batches for all tokens")
    within(padding, 0, 40, "padding")
    _, once, pieces = figures(text, "one epoch: # steps, # tokens in # pieces")
    check(once == sum(lengths) and pieces == sum(-(-each // length) for each in lengths), "every token once per epoch")
    apart = figures(text, "attention within documents differs from each alone by at most #")[0]
    within(apart, 0, 1e-5, "what packing changes")


def page(name):
    """An example has at most 150 lines, and the table of examples gives its length."""
    lines = len((DATA.parents[1] / f"{name}.cpp").read_text(encoding="utf-8").splitlines())
    check(lines <= 150, f"{name}.cpp has {lines} lines, at most 150")
    table = (DATA.parents[1] / "README.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| \[{name}\.cpp\].*\| (\d+) \|", table, re.MULTILINE)
    check(row and int(row[1]) == lines, f"examples/README.md does not say that {name}.cpp has {lines} lines")


def refuse_missing_data(program, folder):
    """With missing data an example ends with a message and an exit code, not with a core dump."""
    ran = subprocess.run([program, folder / "nowhere"], cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
    check(ran.returncode == 1 and "nowhere" in ran.stderr and "terminate" not in ran.stderr,
          f"with missing data it exited with {ran.returncode}: {ran.stderr}")


def main():
    name, program = sys.argv[1:]
    examine = globals()[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        words = {"own_dataset": [], "own_everything": [], "survive_a_cap": [], "several_ranks": [2, DATA], "own_loss": [DATA], "gan": [DATA], "packed_text": TEXTS,
                 "own_sink": [DATA, folder / "run", ENOUGH]}.get(name, [DATA, folder / "run"])
        # With more threads, they wait for each other if a core is busy.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "STOKER_CACHE": str(folder / "cache")}
        ran = subprocess.run([program, *map(str, words)], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
                             check=False)
        print(ran.stdout, end="")
        try:
            page(name)
            check(ran.returncode == 0, f"the exit code is {ran.returncode}")
            examine(ran.stdout, folder)
            if words and name != "several_ranks":  # its first word is a number
                refuse_missing_data(program, folder)
        except Wrong as error:
            print(f"{name}: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
