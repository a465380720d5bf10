# SPDX-License-Identifier: Apache-2.0
"""Runs of `stoker train` and their twins: the same training in plain PyTorch, torchvision and pandas, with the values
of the run's plan.json. Used by learning.py and amp.py, which compare the final results.
"""
import copy
import csv
import dataclasses
import json
import math
import pathlib
import statistics
import subprocess

import pandas
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torchvision.transforms import v2

import networks

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclasses.dataclass
class End:
    """The final results of a run."""
    figures: dict      # by name: "train loss" (mean of the last quarter of the steps), "loss" and "accuracy" on held-out data
    rates: list        # learning rate of each step
    skipped: int = 0   # steps that the scaler skipped
    scale: float = 1   # scale of the last step


def last_quarter(losses):
    return statistics.mean(losses[-max(1, len(losses) // 4):])


# ---- Stoker -----------------------------------------------------------------------------------------------------------


def stoker(program, data, run, words):
    """Trains, and evaluates the last weights. Returns the End and the values of the plan."""
    subprocess.run([program, "train", data, f"run={run}", *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([program, "eval", run, "--checkpoint", "last", "--json"], check=True, capture_output=True, text=True)
    with open(run / "metrics.csv", encoding="utf-8") as file:
        steps = [row for row in csv.DictReader(file) if row["kind"] == "step"]
    figures = {"train loss": last_quarter([float(row["loss"]) for row in steps])}
    figures |= {name: value for name, value in json.loads(done.stdout)["metrics"].items() if name in ("loss", "accuracy")}
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))["plan"]
    skipped = sum(float(row["skipped"]) > 0 for row in steps)  # the column counts consecutive ones
    end = End(figures, [float(row["lr"]) for row in steps], skipped, float(steps[-1].get("scale", 1)))
    return end, {key: row["value"] for key, row in plan.items()}


# ---- Data: each function returns a model, a function that yields an epoch's batches, their number, and held-out data ----


@dataclasses.dataclass
class Twin:
    model: nn.Module
    epoch: object    # () -> batches of (inputs, target) in a new order
    batches: int     # per epoch
    held_out: list   # batches


def shuffled(count, batch):
    """Batches of row numbers in random order; the last batch may be smaller."""
    return torch.randperm(count).split(batch)


class Normalised(nn.Module):
    """Normalises by ImageNet's mean and deviation (grey images: their average over channels); channels_last."""

    def __init__(self, model, grey):
        super().__init__()
        self.model = model.to(memory_format=torch.channels_last)
        self.mean = torch.tensor([0.449] if grey else [0.485, 0.456, 0.406]).view(1, -1, 1, 1)
        self.deviation = torch.tensor([0.226] if grey else [0.229, 0.224, 0.225]).view(1, -1, 1, 1)

    def forward(self, pixels):
        x = (pixels.to(torch.float32) / 255 - self.mean) / self.deviation
        return self.model(x.contiguous(memory_format=torch.channels_last))


def read_images(folder):
    images, labels = [], []
    classes = sorted(each.name for each in folder.iterdir())
    to_tensor = v2.PILToTensor()
    for label, name in enumerate(classes):
        for file in sorted((folder / name).iterdir()):
            with Image.open(file) as image:
                images.append(to_tensor(image))
            labels.append(label)
    return torch.stack(images), torch.tensor(labels), len(classes)


def images(folder, plan):
    train, labels, classes = read_images(folder / "train")
    test, test_labels, _ = read_images(folder / "test")
    grey, size, batch = train.shape[1] == 1, int(plan["image_size"]), int(plan["batch"])
    augment = [v2.RandomCrop(size, padding=int(plan["crop_pad"]))]
    if plan["augment"] == "pad_crop_flip":
        augment.append(v2.RandomHorizontalFlip())
    augment = v2.Compose(augment)

    def epoch():
        for rows in shuffled(len(train), batch):
            yield torch.stack([augment(train[row]) for row in rows]), labels[rows]
    return Twin(Normalised(networks.Cnn(classes, train.shape[1]), grey), epoch, math.ceil(len(train) / batch),
                list(zip(test.split(256), test_labels.split(256))))


def text(file, plan):
    written = file.read_text(encoding="utf-8")
    known = {character: i for i, character in enumerate(sorted(set(written)))}
    ids = torch.tensor([known[each] for each in written])
    cut, context, batch = len(ids) - int(float(plan["val"]) * len(ids)), int(plan["context"]), int(plan["batch"])
    train, held_out = ids[:cut], ids[cut:]
    windows = (len(train) - context) // context  # adjacent windows; one random shift per epoch for all

    def epoch():
        shift = torch.randint(min(context, len(train) - windows * context), ()).item()
        for rows in shuffled(windows, batch):
            at = (rows * context + shift).unsqueeze(1) + torch.arange(context)
            yield train[at], train[at + 1]
    whole = (len(held_out) - 1) // context * context
    seen, wanted = held_out[:whole].view(-1, context), held_out[1:whole + 1].view(-1, context)
    tail = [(held_out[whole:-1].unsqueeze(0), held_out[whole + 1:].unsqueeze(0))] if whole < len(held_out) - 1 else []
    model = networks.Gpt(len(known), context, int(plan["layers"]), int(plan["heads"]), int(plan["width"]))
    return Twin(model, epoch, math.ceil(windows / batch), list(zip(seen.split(64), wanted.split(64))) + tail)


class TableNetwork(nn.Module):
    """src/stoker/models/tabular_mlp.cpp: numbers, their position within each quantile bin, and embedded categories."""

    def __init__(self, edges, numbers, categories, classes, hidden, layers, dropout):
        super().__init__()
        bins = max(len(each) for each in edges) - 1
        self.low, self.width = torch.zeros(len(edges), bins), torch.full((len(edges), bins), math.inf)
        for i, each in enumerate(edges):
            self.low[i, :len(each) - 1], self.width[i, :len(each) - 1] = each[:-1], each.diff()
        self.embeddings = nn.ModuleList(nn.Embedding(rows, min(50, math.ceil(1.6 * rows ** 0.56))) for rows in categories)
        for each in self.embeddings:
            nn.init.normal_(each.weight, std=0.1)
        width = numbers + len(edges) * bins + sum(each.embedding_dim for each in self.embeddings)
        self.body = nn.Sequential()
        for _ in range(layers):
            self.body.extend([nn.Linear(width, hidden), nn.ReLU(inplace=True), nn.Dropout(dropout)])
            width = hidden
        self.body.append(nn.Linear(width, classes))

    def forward(self, row):
        numbers, categories = row[:, :-len(self.embeddings)], row[:, -len(self.embeddings):].long()
        pieces = ((numbers[:, :len(self.low)].unsqueeze(2) - self.low) / self.width).clamp(0, 1).flatten(1)
        embedded = [each(categories[:, i]) for i, each in enumerate(self.embeddings)]
        return self.body(torch.cat([numbers, pieces, *embedded], 1))


def quantiles(values, bins):
    ordered = values.sort().values
    return ordered[[(len(ordered) - 1) * i // bins for i in range(bins + 1)]].unique()


def table(train_file, test_file, plan):
    """Standardises numbers by the training rows; a missing number becomes their mean and is marked. A category becomes
    its position in the sorted categories of the training rows, 0 if it is not there. Inputs are one float tensor:
    numbers first, then categories."""
    frames = [pandas.read_csv(file, header=None, skipinitialspace=True, na_values="?") for file in (train_file, test_file)]
    names, target = frames[0].columns[:-1], frames[0].columns[-1]
    numbers = [each for each in names if pandas.api.types.is_numeric_dtype(frames[0][each])]
    words = [each for each in names if each not in numbers]
    mean, deviation = frames[0][numbers].mean(), frames[0][numbers].std(ddof=0)
    marked = [each for each in numbers if frames[0][each].isna().any()]
    known = {each: {word: i + 1 for i, word in enumerate(sorted(frames[0][each].dropna().unique()))} for each in words}
    classes = sorted(frames[0][target].str.strip(plan["label_strip"]).unique())

    def encoded(frame):
        columns = [((frame[numbers] - mean) / deviation).fillna(0), frame[marked].isna().astype(float),
                   pandas.DataFrame({each: frame[each].map(known[each]).fillna(0) for each in words})]
        labels = frame[target].str.strip(plan["label_strip"]).map(classes.index)
        return torch.tensor(pandas.concat(columns, axis=1).values, dtype=torch.float32), torch.tensor(labels.values)
    (train, labels), (test, test_labels) = map(encoded, frames)
    edges = [quantiles(torch.tensor(((frames[0][each] - mean[each]) / deviation[each]).dropna().values), int(plan["bins"])).float()
             for each in numbers]
    model = TableNetwork(edges, len(numbers) + len(marked), [len(known[each]) + 1 for each in words], len(classes),
                         int(plan["hidden"]), int(plan["layers"]), float(plan["dropout"]))
    batch = int(plan["batch"])

    def epoch():
        for rows in shuffled(len(train), batch):
            yield train[rows], labels[rows]
    return Twin(model, epoch, math.ceil(len(train) / batch), list(zip(test.split(1024), test_labels.split(1024))))


# ---- Training as the plan says ------------------------------------------------------------------------------------------


def peak_rate(plan):
    growth = int(plan["batch"]) / float(plan["lr_batch"])
    return float(plan["lr"]) * {"linear": growth, "sqrt": math.sqrt(growth), "none": 1}[plan["lr_scale"]]


def make_optimizer(model, plan):
    groups = networks.decay_groups(model, float(plan["weight_decay"]))
    if plan["optimizer"] == "sgd":
        return torch.optim.SGD(groups, peak_rate(plan), momentum=float(plan["optimizer.momentum"]),
                               nesterov=plan["optimizer.nesterov"] == "on", fused=True)
    assert plan["optimizer"] == "adamw"
    return torch.optim.AdamW(groups, peak_rate(plan), betas=(float(plan["optimizer.beta1"]), float(plan["optimizer.beta2"])),
                             eps=float(plan["optimizer.eps"]), fused=True)


def make_schedule(optimizer, plan, steps):
    warmup = float(plan["warmup"])
    rise = min(round(warmup * steps if warmup < 1 else warmup), steps - 1)
    if plan["schedule"] == "one_cycle":
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, peak_rate(plan), total_steps=steps, pct_start=rise / steps,
                                                   cycle_momentum=False)
    assert plan["schedule"] == "cosine"
    end = float(plan["lr_end"])

    def factor(step):
        if step < rise:
            return (step + 1) / rise
        return end + (1 - end) * 0.5 * (1 + math.cos(math.pi * (step - rise) / (steps - rise)))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


class Average:
    """The moving average of the weights, for evaluation, with the slow start of tf.train.ExponentialMovingAverage."""

    def __init__(self, model, decay):
        self.model, self.decay, self.updates = copy.deepcopy(model), decay, 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        theirs = [*model.parameters(), *model.buffers()]
        for mine, value in zip([*self.model.parameters(), *self.model.buffers()], theirs):
            if mine.is_floating_point():
                mine.lerp_(value, 1 - decay)


@torch.inference_mode()
def evaluate(model, batches, precision):
    model.eval()
    loss = right = total = 0
    for inputs, target in batches:
        with torch.autocast("cpu", DTYPES.get(precision, torch.bfloat16), precision in DTYPES):
            logits = model(inputs)
        logits, target = logits.flatten(0, -2).float(), target.flatten()
        loss += F.cross_entropy(logits, target, reduction="sum").item()
        right += (logits.argmax(1) == target).sum().item()
        total += len(target)
    model.train()
    return {"loss": loss / total, "accuracy": right / total}


def endless(epoch):
    while True:
        yield from epoch()


def train(twin, plan):
    """Trains as the plan says and evaluates on the held-out data."""
    model, precision, clip, decay = twin.model, plan["precision"], float(plan["clip"]), float(plan["ema"])
    steps = int(plan["steps"]) or int(plan["epochs"]) * twin.batches
    optimizer = make_optimizer(model, plan)
    schedule = make_schedule(optimizer, plan, steps)
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16")
    average = Average(model, decay) if decay > 0 else None
    losses, rates, skipped = [], [], 0
    for _, (inputs, target) in zip(range(steps), endless(twin.epoch)):
        with torch.autocast("cpu", DTYPES.get(precision, torch.bfloat16), precision in DTYPES):
            logits = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, -2).float(), target.flatten(),
                               label_smoothing=float(plan.get("label_smoothing", 0)))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        if clip > 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        rates.append(schedule.get_last_lr()[0])
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < scale
        schedule.step()
        if average:
            average.update(model)
        losses.append(loss.item())
    figures = evaluate(average.model if average else model, twin.held_out, precision)
    return End({"train loss": last_quarter(losses)} | figures, rates, skipped, scale)
