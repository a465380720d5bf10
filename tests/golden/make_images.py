#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes images.tsv, resize.tsv, resize_bicubic.tsv and centre_crop.tsv: Pillow's pixels of the committed images and of a computed one.

Run with Pillow and numpy (last run with Pillow 13.0.0):  python3 tests/golden/make_images.py
Pixels are stored as their 64-bit FNV-1a hash, because ours must be equal bit for bit.
"""
import pathlib

import numpy
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).parent
IMAGES = HERE.parent / "data" / "broken-images"

DECODED = """valid_but_unusual/hopper.jpg valid_but_unusual/hopper_gray.jpg valid_but_unusual/pil_sample_cmyk.jpg
made_here/cmyk_progressive.jpg valid_but_unusual/progressive_test.jpg made_here/1x1.jpg made_here/4000x1.png
exif/hopper_orientation_2.jpg exif/hopper_orientation_3.jpg exif/hopper_orientation_4.jpg exif/hopper_orientation_5.jpg
exif/hopper_orientation_6.jpg exif/hopper_orientation_7.jpg exif/hopper_orientation_8.jpg valid_but_unusual/p_16.png
valid_but_unusual/input_bw_one_band.png valid_but_unusual/l_trns.png valid_but_unusual/rgb_trns.png
valid_but_unusual/p_trns_single.png valid_but_unusual/pngsuite_basi2c08_interlaced.png""".split()
# One channel: PNG, and JPEG files that are grey. (From a colour JPEG we take the stored luma; Pillow computes it.)
GREY = """valid_but_unusual/hopper_gray.jpg valid_but_unusual/input_bw_one_band.png valid_but_unusual/rgb_trns.png
valid_but_unusual/p_16.png valid_but_unusual/l_trns.png""".split()


def fnv(data: bytes) -> str:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def computed(width, height, channels):
    y, x, c = numpy.mgrid[0:height, 0:width, 0:channels].astype(numpy.int64)
    pixels = (x * 7 + y * 13 + c * 29 + (x * y) % 31 * 5 + ((x * x + y * 3) >> 3)) & 255
    pixels = pixels.astype(numpy.uint8)
    if channels == 4:  # as CMYK: Pillow multiplies colours by alpha before it resizes RGBA
        return Image.frombytes("CMYK", (width, height), pixels.tobytes())
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)


def main():
    lines = ["# file\tchannels\twidth\theight\tFNV-1a of the pixels, HWC"]
    for name, mode in [(n, "RGB") for n in DECODED] + [(n, "L") for n in GREY]:
        image = ImageOps.exif_transpose(Image.open(IMAGES / name)).convert(mode)
        lines.append(f"{name}\t{len(mode) if mode == 'RGB' else 1}\t{image.width}\t{image.height}\t{fnv(image.tobytes())}")
    (HERE / "images.tsv").write_text("\n".join(lines) + "\n")

    boxes = [((40, 30), 3, (0, 0, 40, 30), (20, 15), None), ((40, 30), 3, (0, 0, 40, 30), (77, 61), None),
             ((33, 47), 1, (0, 0, 33, 47), (8, 8), None), ((33, 47), 3, (3.25, 7.5, 29.75, 40.125), (16, 24), None),
             ((301, 200), 3, (10, 20, 290, 190), (64, 64), (5, 9, 40, 31)), ((5, 1), 3, (0, 0, 5, 1), (3, 7), None),
             ((1, 1), 1, (0, 0, 1, 1), (4, 4), None), ((500, 375), 3, (0, 0, 500, 375), (341, 256), (58, 16, 224, 224)),
             ((64, 64), 4, (0, 0, 64, 64), (64, 31), None), ((1000, 3), 3, (0, 0, 1000, 3), (2, 2), None)]
    for name, how in (("resize.tsv", Image.Resampling.BILINEAR), ("resize_bicubic.tsv", Image.Resampling.BICUBIC)):
        lines = ["# width height channels | box | scaled size | window left top width height | FNV-1a of the window's pixels"]
        for (width, height), channels, box, scaled, window in boxes:
            out = computed(width, height, channels).resize(scaled, how, box=box)
            left, top, w, h = window or (0, 0, *scaled)
            out = out.crop((left, top, left + w, top + h))
            numbers = (width, height, channels, *box, *scaled, left, top, w, h)
            lines.append(" ".join(str(v) for v in (*numbers, fnv(out.tobytes()))))
        (HERE / name).write_text("\n".join(lines) + "\n")

    # torchvision.transforms.Resize(resize) and CenterCrop(out): the long side is cut to a whole number, the corner rounded.
    lines = ["# width height resize out | FNV-1a of the pixels"]
    for width, height, resize, out in [(500, 375, 256, 224), (375, 500, 256, 224), (333, 333, 40, 32), (97, 31, 36, 33)]:
        if width <= height:
            scaled = (resize, int(resize * height / width))
        else:
            scaled = (int(resize * width / height), resize)
        image = computed(width, height, 3).resize(scaled, Image.Resampling.BILINEAR)
        top, left = int(round((scaled[1] - out) / 2.0)), int(round((scaled[0] - out) / 2.0))
        image = image.crop((left, top, left + out, top + out))
        lines.append(f"{width} {height} {resize} {out} {fnv(image.tobytes())}")
    (HERE / "centre_crop.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
