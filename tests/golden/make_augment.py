#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes augment.tsv: the results of torchvision's transforms (v2, on uint8 tensors) on a computed image.

The whole result is stored, two capital hexadecimal digits per byte, HWC. Ours may differ by one grey level, because
torchvision computes in float32 and we compute in integers. Affine has no fill colour: with one, torchvision applies the
inside weight of border pixels twice (mask * (sample - fill) + fill, but sample is faded already); we apply it once.
"""
import pathlib

import numpy
import torch
import torchvision
import torchvision.transforms.v2.functional as F

import make_images
import versions

torch.set_num_threads(1)

FACTORS = [0.0, 0.3, 1.0, 1.4, 2.0]
CASES = [(name, (value,)) for name in ("brightness", "contrast", "saturation") for value in FACTORS]
CASES += [("hue", (value,)) for value in (0.0, 0.07, -0.25, 0.5, -0.5)]
CASES += [("grey", ()), ("blur", (3, 0.1)), ("blur", (5, 0.8)), ("blur", (9, 2.0)), ("blur", (23, 1.3))]
CASES += [("affine", each) for each in ((0, 0, 0, 1, 0, 0), (30, 0, 0, 1, 0, 0), (0, 5, -3, 1, 0, 0), (90, 0, 0, 1, 0, 0),
                                        (-45, 3, 2, 1.3, 10, -5), (180, 0, 0, 0.7, 0, 20), (7, -2, 1, 0.4, 30, 30))]
WIDTH, HEIGHT = 17, 15  # more than half of the largest kernel, which torch's padding needs


def changed(image, name, values):
    if name == "blur":
        return F.gaussian_blur(image, [values[0]] * 2, [values[1]] * 2)
    if name == "grey":
        return F.rgb_to_grayscale(image, image.shape[0])
    if name == "affine":
        angle, x, y, scale, shear_x, shear_y = values
        return F.affine(image, float(angle), [x, y], float(scale), [float(shear_x), float(shear_y)],
                        interpolation=torchvision.transforms.InterpolationMode.BILINEAR, fill=None)
    return getattr(F, "adjust_" + name)(image, values[0])


def main():
    lines = [f"# Made by tests/golden/make_augment.py with {versions.text()}; do not edit.",
             "# operation channels values | pixels, HWC"]
    for channels in (3, 1):
        pixels = numpy.array(make_images.computed(WIDTH, HEIGHT, channels)).reshape(HEIGHT, WIDTH, channels)
        image = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
        for name, values in CASES:
            result = changed(image, name, values).permute(1, 2, 0).contiguous().numpy()
            lines.append(f"{name} {channels} {' '.join(map(str, values))} | {result.tobytes().hex().upper()}")
    pathlib.Path(__file__).with_name("augment.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
