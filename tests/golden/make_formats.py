#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small WebP, JPEG and .npy files to tests/data/formats/, and the pixels that Pillow and numpy decode to formats.tsv.

Run with Pillow and numpy (last run with Pillow 13.0.0):  python3 tests/golden/make_formats.py
Pixels are stored as their 64-bit FNV-1a hash, because ours must be equal bit for bit. Existing files do not change: another
encoder would write other bytes for the same image. Pillow cannot write lossy_simple_filter.webp, so cwebp did:
cwebp -nostrong -f 60 -q 40 hopper.jpg -crop 20 10 101 107.
"""
import pathlib

import numpy
from PIL import Image, ImageOps

from make_images import computed, fnv

HERE = pathlib.Path(__file__).parent
FOLDER = HERE.parent / "data" / "formats"
HOPPER = HERE.parent / "data" / "broken-images" / "valid_but_unusual" / "hopper.jpg"


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags


def animation(first, path):
    """Two frames; the first fills the canvas."""
    second = first.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    first.save(path, save_all=True, append_images=[second], duration=40, lossless=True)


def small_first_frame(frame, path):
    """A first frame of 20 x 14 at (6, 4) of a canvas of 40 x 30. Pillow's encoder cannot write this, so the chunks are
    assembled here (RIFF container of the WebP specification)."""
    import io
    def number(value, size):
        return value.to_bytes(size, "little")
    def chunk(kind, data):
        return kind + number(len(data), 4) + data + b"\0" * (len(data) % 2)
    still = io.BytesIO()
    frame.save(still, "WEBP", lossless=True)
    header = number(6 // 2, 3) + number(4 // 2, 3) + number(frame.width - 1, 3) + number(frame.height - 1, 3)
    body = chunk(b"VP8X", b"\x02\0\0\0" + number(39, 3) + number(29, 3)) + chunk(b"ANIM", b"\0" * 6)
    body += chunk(b"ANMF", header + number(40, 3) + b"\0" + still.getvalue()[12:])
    path.write_bytes(b"RIFF" + number(len(body) + 4, 4) + b"WEBP" + body)


def webp_files():
    hopper = Image.open(HOPPER).convert("RGB")
    odd = computed(61, 43, 3)
    alpha = Image.merge("RGBA", (*odd.split(), computed(61, 43, 1)))
    photo = hopper.crop((20, 10, 121, 117))
    return {
        "lossy.webp": lambda path: photo.save(path, quality=80),
        "lossy_poor.webp": lambda path: photo.save(path, quality=5, method=6),
        "lossy_1x1.webp": lambda path: photo.crop((0, 0, 1, 1)).save(path),
        "lossy_alpha.webp": lambda path: alpha.save(path, quality=70),
        "lossless.webp": lambda path: odd.save(path, lossless=True),
        "lossless_alpha.webp": lambda path: alpha.save(path, lossless=True, exact=True),
        "palette.webp": lambda path: photo.quantize(16).convert("RGB").save(path, lossless=True),
        "grey.webp": lambda path: photo.convert("L").save(path, quality=90),
        "exif_6.webp": lambda path: photo.save(path, quality=80, exif=exif(6)),
        "exif_2.webp": lambda path: odd.save(path, lossless=True, exif=exif(2)),
        "animation.webp": lambda path: animation(odd, path),
        "animation_small_first_frame.webp": lambda path: small_first_frame(computed(20, 14, 3), path),
    }


def npy_files():
    """{file: (array, visible pixels)}; pixels: 8 bits, HWC."""
    colour = numpy.asarray(computed(23, 17, 3))
    grey = numpy.asarray(computed(23, 17, 1))
    alpha = numpy.concatenate([colour, grey[:, :, None]], 2)
    wide = (colour.astype(numpy.uint16) << 8) + 255 - colour
    return {
        "colour.npy": (colour, colour), "grey.npy": (grey, grey), "grey_1.npy": (grey[:, :, None], grey),
        "alpha.npy": (alpha, colour), "wide.npy": (wide, colour),
        "wide_big_endian.npy": (wide[:, :, 0].astype(">u2"), colour[:, :, 0]),
        "version_2.npy": (colour, colour), "version_3.npy": (grey, grey),
    }


def jpeg_files():
    """Slowly changing colours, which show a position to a fraction of a pixel."""
    def smooth(width, height):
        y, x = numpy.mgrid[0:height, 0:width]
        planes = [x * 255 / width, y * 255 / height, 127 + 80 * numpy.sin(x / 40) * numpy.cos(y / 30)]
        return Image.fromarray(numpy.stack(planes, 2).round().astype(numpy.uint8))
    return {
        "smooth.jpg": lambda path: smooth(333, 251).save(path, quality=95),
        "smooth_turned_6.jpg": lambda path: smooth(320, 248).save(path, quality=95, exif=exif(6)),
        "smooth_turned_3.jpg": lambda path: smooth(322, 250).save(path, quality=95, exif=exif(3)),
    }


def save_npy(path, array):
    version = (int(path.stem[-1]), 0) if path.stem.startswith("version") else None
    with path.open("wb") as file:
        numpy.lib.format.write_array(file, array, version)


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, save in (webp_files() | jpeg_files()).items():
        if not (FOLDER / name).exists():
            save(FOLDER / name)
    lines = ["# file\tchannels\twidth\theight\tFNV-1a of the pixels, HWC"]
    for path in sorted(FOLDER.glob("*.webp")):
        for mode in ("RGB", "L"):
            image = ImageOps.exif_transpose(Image.open(path)).convert("RGB").convert(mode)
            lines.append(f"{path.name}\t{len(mode) if mode == 'RGB' else 1}\t{image.width}\t{image.height}\t"
                         f"{fnv(image.tobytes())}")
    for name, (array, seen) in npy_files().items():
        save_npy(FOLDER / name, array)
        for mode in ("RGB", "L"):
            image = Image.fromarray(seen).convert(mode)
            lines.append(f"{name}\t{len(mode) if mode == 'RGB' else 1}\t{image.width}\t{image.height}\t"
                         f"{fnv(image.tobytes())}")
    (HERE / "formats.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
