#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The other systems of bench/data, as their users write them. One measurement per process; the last line is JSON.

    peers.py pil|tensor|ffcv --images FOLDER [--workers N] [--seconds S] [--formats FOLDER]
    peers.py first --images FOLDER [--workers N]
    peers.py cifar|table [--seconds S]
    peers.py resume

pil, tensor: DataLoader over files; each decodes, draws a rectangle (8 to 100 % of the area, 3:4 to 4:3), scales it to
224 x 224 with antialias, mirrors half of the images, and collates 64 as uint8. ffcv: the same from FFCV's own file,
which it writes once to --formats and re-encodes (quality 90). cifar: DataLoader over a TensorDataset of that size, no
augmentation. table: DataLoader over a Dataset that reads rows of a DataFrame. first: seconds from ImageFolder to the
first batch, without imports. resume: seconds that StatefulDataLoader takes to resume after 1,500 batches.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import sys
import time
from importlib import metadata

import numpy
import psutil
import torch

SIZE, BATCH, ROWS_PER_BATCH = 224, 64, 512
CIFAR = 50_000
ROWS, NUMBERS, CATEGORIES = 48_842, 6, 8  # adult's


class Endless(torch.utils.data.Sampler):
    """Endless permutations: no end of an epoch is timed."""

    def __init__(self, count):
        self.count, self.random = count, random.Random(1)

    def __iter__(self):
        while True:
            yield from self.random.sample(range(self.count), self.count)


class Images(torch.utils.data.Dataset):
    def __init__(self, folder, load):
        self.files = sorted(each for each in pathlib.Path(folder).glob("*/*") if each.is_file())
        names = sorted({each.parent.name for each in self.files})
        self.labels = [names.index(each.parent.name) for each in self.files]
        self.load = load

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.load(str(self.files[index])), self.labels[index]


def opened(path):
    from PIL import Image
    with Image.open(path) as image:
        return image.convert("RGB")


def operations(*more):
    from torchvision.transforms import v2
    return v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip(), *more])


def pil(arguments):
    from torchvision.transforms import v2
    change = operations(v2.PILToTensor())
    return over_files(arguments, lambda path: change(opened(path)))


def tensor(arguments):
    from torchvision import io
    change = operations()
    return over_files(arguments, lambda path: change(io.decode_jpeg(io.read_file(path), io.ImageReadMode.RGB)))


def over_files(arguments, load):
    images = Images(arguments.images, load)
    return rate(iter(torch.utils.data.DataLoader(images, batch_size=BATCH, sampler=Endless(len(images)), drop_last=True,
                                                 num_workers=arguments.workers)), arguments, "torchvision", "pillow")


def ffcv(arguments):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import RandomHorizontalFlip, ToTensor
    images, file = Images(arguments.images, opened), pathlib.Path(arguments.formats) / "images.beton"
    if not file.exists():
        if os.fork() == 0:  # in a child process, so that the measuring process is as fresh as in later turns
            write_ffcv(f"{file}.part", images, RGBImageField("jpg", jpeg_quality=90), IntField())
            os._exit(0)
        if os.wait()[1] != 0:
            sys.exit("peers.py: FFCV could not write its file")
        pathlib.Path(f"{file}.part").replace(file)
    loader = Loader(str(file), batch_size=BATCH, num_workers=max(1, arguments.workers), os_cache=True, order=OrderOption.RANDOM,
                    drop_last=True, indices=numpy.tile(numpy.arange(len(images)), 64),  # an epoch too long to end
                    pipelines={"image": [RandomResizedCropRGBImageDecoder((SIZE, SIZE)), RandomHorizontalFlip(), ToTensor()],
                               "label": [IntDecoder(), ToTensor()]})
    return rate(itertools.chain.from_iterable(iter(loader) for _ in itertools.count()), arguments, "ffcv", "numba")


def write_ffcv(file, images, image, label):
    from ffcv.writer import DatasetWriter
    os.dup2(2, 1)
    DatasetWriter(file, {"image": image, "label": label}, num_workers=1).from_indexed_dataset(images)


def cifar(arguments):
    pixels, labels = torch.randint(0, 256, (CIFAR, 3, 32, 32), dtype=torch.uint8), torch.randint(0, 10, (CIFAR,))
    data = torch.utils.data.TensorDataset(pixels, labels)
    return rate(epochs(torch.utils.data.DataLoader(data, batch_size=ROWS_PER_BATCH, shuffle=True, drop_last=True)), arguments)


def table(arguments):
    import pandas
    source = numpy.random.default_rng(0)
    frame = pandas.DataFrame(
        {f"n{i}": source.standard_normal(ROWS).astype("float32") for i in range(NUMBERS)}
        | {f"c{i}": source.integers(0, 40, ROWS) for i in range(CATEGORIES)} | {"target": source.integers(0, 2, ROWS)})

    class Rows(torch.utils.data.Dataset):
        def __init__(self):
            self.numbers = frame[[f"n{i}" for i in range(NUMBERS)]]
            self.categories = frame[[f"c{i}" for i in range(CATEGORIES)]]
            self.target = frame["target"]

        def __len__(self):
            return len(self.target)

        def __getitem__(self, index):
            return (torch.from_numpy(self.numbers.iloc[index].to_numpy()), torch.from_numpy(self.categories.iloc[index].to_numpy()),
                    self.target.iloc[index])
    return rate(epochs(torch.utils.data.DataLoader(Rows(), batch_size=ROWS_PER_BATCH, shuffle=True, drop_last=True)), arguments, "pandas")


def epochs(loader):
    return itertools.chain.from_iterable(iter(loader) for _ in itertools.count())


def first(arguments):
    from torchvision import datasets
    from torchvision.transforms import v2
    change = operations(v2.PILToTensor())
    begin = time.perf_counter()
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(arguments.images, change), batch_size=BATCH, shuffle=True,
                                         num_workers=arguments.workers)
    next(iter(loader))
    return {"seconds": time.perf_counter() - begin} | versions("torchvision")


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        return index


def resume(_):
    from torchdata.stateful_dataloader import StatefulDataLoader

    def made():
        return StatefulDataLoader(Numbers(), batch_size=BATCH, shuffle=True)
    torch.manual_seed(0)
    loader = made()
    batches = iter(loader)
    for _ in range(1_500):
        next(batches)
    state, wanted = loader.state_dict(), next(batches)
    torch.manual_seed(1)
    again = made()
    begin = time.perf_counter()
    again.load_state_dict(state)
    found = next(iter(again))
    seconds = time.perf_counter() - begin
    if not torch.equal(found, wanted):
        sys.exit("peers.py: StatefulDataLoader resumed at another batch")
    return {"seconds": seconds} | versions("torchdata")


def versions(*packages):
    return {"versions": {name: metadata.version(name) for name in ("torch", *packages)}}


def cpu_seconds():
    """CPU time of this process and its children, including children that have ended."""
    me = psutil.Process()
    return sum(sum(each.cpu_times()[:4]) for each in [me, *me.children(recursive=True)])


def rate(batches, arguments, *packages):
    """Samples per second and per CPU-second. Workers deliver in turn, so the window is a whole number of rounds."""
    round_ = max(1, arguments.workers)

    def take():
        count = 0
        for batch in itertools.islice(batches, round_):
            count += len(batch[0])
        return count
    for _ in range(4):  # more than workers prepare ahead
        take()
    samples, cpu, begin, seconds = 0, cpu_seconds(), time.perf_counter(), 0
    while seconds < arguments.seconds:
        samples += take()
        seconds = time.perf_counter() - begin
    return {"samples": samples, "seconds": seconds, "per_second": samples / seconds,
            "per_cpu_second": samples / (cpu_seconds() - cpu)} | versions(*packages)


PEERS = {each.__name__: each for each in (pil, tensor, ffcv, cifar, table, first, resume)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--images")
    parser.add_argument("--formats")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # as DataLoader does in its workers
    figures = PEERS[arguments.peer](arguments)
    print(json.dumps(figures), flush=True)
    for child in psutil.Process().children(recursive=True):
        child.kill()
    os._exit(0)  # the shutdown of the loaders is not measured


if __name__ == "__main__":
    main()
