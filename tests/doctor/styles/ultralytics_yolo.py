# SPDX-License-Identifier: Apache-2.0
"""A small YOLO trained by Ultralytics on pictures of one class, with a trainer of its own for the data set."""

import os
import pathlib

os.environ.setdefault("YOLO_OFFLINE", "true")  # nothing is fetched

import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from ultralytics import YOLO  # noqa: E402
from ultralytics.models.yolo.detect import DetectionTrainer  # noqa: E402

import faults  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("CASE_OUT", "/tmp")) / "squares"
BATCH, EPOCHS = 8, 3


def draw(count):
    """Pictures of a bright square, each with its box."""
    numbers = np.random.default_rng(0)
    for part in ("train", "val"):
        for kind in ("images", "labels"):
            (FOLDER / kind / part).mkdir(parents=True, exist_ok=True)
        for index in range(count if part == "train" else BATCH):
            pixels = numbers.integers(0, 99, (64, 64, 3), dtype=np.uint8)
            left, top = numbers.integers(0, 40, 2)
            pixels[top : top + 20, left : left + 20] = 255
            Image.fromarray(pixels).save(FOLDER / "images" / part / f"{index}.png")
            box = f"0 {(left + 10) / 64} {(top + 10) / 64} {20 / 64} {20 / 64}\n"
            (FOLDER / "labels" / part / f"{index}.txt").write_text(box)
    (FOLDER / "data.yaml").write_text(f"path: {FOLDER}\ntrain: images/train\nval: images/val\nnames: {{0: square}}\n")


class Slow(faults.Slow):
    """With all that Ultralytics asks a data set for."""

    def __getattr__(self, name):
        if name == "inner":  # not there yet, in a copy
            raise AttributeError(name)
        return getattr(self.inner, name)


class Trainer(DetectionTrainer):
    def build_dataset(self, img_path, mode="train", batch=None):
        data = super().build_dataset(img_path, mode, batch)
        return Slow(data) if mode == "train" else data


def main():
    draw(BATCH * faults.STEPS // EPOCHS)
    model = YOLO("yolo11n.yaml")
    model.add_callback("on_train_batch_end", lambda trainer: faults.each_step(trainer.model, trainer.loss))
    model.train(trainer=Trainer, data=str(FOLDER / "data.yaml"), epochs=EPOCHS, batch=BATCH, nbs=BATCH, imgsz=64, device="cpu",
                workers=0, val=False, plots=False, save=False, verbose=False, amp=False, project=str(FOLDER), exist_ok=True)  # fmt: skip
    faults.say(model.model)


if __name__ == "__main__":
    main()
