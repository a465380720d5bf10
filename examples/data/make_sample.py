#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes fashion-mnist-6000.tar: the first 500 train and 100 test images of each Fashion-MNIST class as grey PNG files.

    apt-get install dataset-fashion-mnist
    examples/data/make_sample.py [IDX_FOLDER] [OUTPUT.tar]

Members are train/<class>/<index>.png and test/<class>/<index>.png, sorted; <index> is the image's place in its IDX
file. The same zlib gives the same bytes: every time stamp, owner and mode in the archive is fixed. Standard library
only.
"""
import gzip
import pathlib
import struct
import sys
import tarfile
import zlib
from io import BytesIO

CLASSES = ["t-shirt_top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle_boot"]
SPLITS = {"train": ("train", 500), "test": ("t10k", 100)}  # split -> file prefix, images per class


def read_idx(path):
    """The payload of an IDX file (http://yann.lecun.com/exdb/mnist) and its dimensions."""
    data = gzip.decompress(path.read_bytes())
    zero, kind, rank = struct.unpack(">HBB", data[:4])
    if zero != 0 or kind != 8:
        sys.exit(f"{path}: is not an IDX file of unsigned bytes")
    shape = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    return data[4 + 4 * rank:], shape


def paeth(left, up, corner):
    near = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))
    return near[2]


def filter_row(kind, row, above):
    """One PNG scan line after filter 0 ... 4 (PNG specification, section 9), one byte per pixel."""
    result = bytearray([kind])
    for x, value in enumerate(row):
        left, up, corner = (row[x - 1], above[x], above[x - 1]) if x else (0, above[0], 0)
        guess = (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]
        result.append((value - guess) & 255)
    return bytes(result)


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(pixels, height, width):
    """The smallest of six filter choices (each filter throughout, and the row-wise best) and three zlib strategies."""
    rows = [pixels[y * width:(y + 1) * width] for y in range(height)]
    above = [bytes(width)] + rows[:-1]
    filtered = [[filter_row(kind, row, up) for kind in range(5)] for row, up in zip(rows, above)]
    cost = lambda line: sum(min(value, 256 - value) for value in line[1:])
    choices = [b"".join(row[kind] for row in filtered) for kind in range(5)]
    choices.append(b"".join(min(row, key=cost) for row in filtered))
    best = None
    for text in choices:
        for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_RLE):
            packer = zlib.compressobj(9, zlib.DEFLATED, 10, 9, strategy)  # a window of 1 KiB holds the whole image
            packed = packer.compress(text) + packer.flush()
            best = packed if best is None or len(packed) < len(best) else best
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8-bit grey, not interlaced
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", best) + chunk(b"IEND", b"")


def members(folder):
    for split, (prefix, per_class) in SPLITS.items():
        pixels, (count, height, width) = read_idx(folder / f"{prefix}-images-idx3-ubyte.gz")
        labels, _ = read_idx(folder / f"{prefix}-labels-idx1-ubyte.gz")
        taken = [0] * len(CLASSES)
        for index in range(count):
            label = labels[index]
            if taken[label] < per_class:
                taken[label] += 1
                start = index * height * width
                image = png(pixels[start:start + height * width], height, width)
                yield f"{split}/{CLASSES[label]}/{index:05d}.png", image


def main():
    here = pathlib.Path(__file__).resolve().parent
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist")
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else here / "fashion-mnist-6000.tar"
    with tarfile.open(output, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, image in sorted(members(folder)):
            entry = tarfile.TarInfo(name)  # mode 644, time 0, owner 0: all fixed
            entry.size = len(image)
            archive.addfile(entry, BytesIO(image))
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
