# SPDX-License-Identifier: Apache-2.0
"""From image files to weights as users of PyTorch write it, with the same work as `stoker train`.
Uses ImageFolder, v2 transforms, DataLoader and eager training, with an evaluation and a state_dict after each epoch.
speed.py runs it as a child process.

    train_peer.py DIR --out FILE [--workers N] [--steps N] ...

DIR: class folders. Prints one line of JSON per event: "ready" (before the first batch), "step" (the first step is
done), "weights" (the last state_dict is on the disk; with the accuracy on the held-out images).
"""
import argparse
import json

import torch
from PIL import Image
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import ImageFolder
from torchvision.models import resnet18
from torchvision.transforms import v2

import networks

COLOUR = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
GREY = ((0.449,), (0.226,))
SEEN_WHOLE = 96  # pixels: up to this size Stoker evaluates without a margin around the crop; so does this peer


def tell(event, **more):
    print(json.dumps({"event": event} | more), flush=True)


def open_as(mode):
    def read(path):
        with Image.open(path) as image:
            return image.convert(mode)
    return read


def loaders(arguments):
    """Training and held-out images as uint8; they are normalised per batch."""
    pad_crop = v2.RandomCrop(arguments.size, padding=max(1, arguments.size // 16))
    crop = [v2.RandomResizedCrop(arguments.size, antialias=True)] if arguments.photographs else [pad_crop]
    margin = arguments.size if arguments.size <= SEEN_WHOLE else (arguments.size * 8 + 6) // 7
    whole = [v2.Resize(margin), v2.CenterCrop(arguments.size)] if arguments.photographs else []
    flip = [] if arguments.grey else [v2.RandomHorizontalFlip()]
    open_one = open_as("L" if arguments.grey else "RGB")
    train = ImageFolder(arguments.folder, v2.Compose([*crop, *flip, v2.PILToTensor()]), loader=open_one)
    held_out = ImageFolder(arguments.folder, v2.Compose([*whole, v2.PILToTensor()]), loader=open_one)
    order = torch.randperm(len(train)).tolist()
    cut = round(0.1 * len(train))
    shared = {"batch_size": arguments.batch, "num_workers": arguments.workers, "persistent_workers": arguments.workers > 0}
    return (DataLoader(Subset(train, order[cut:]), shuffle=True, **shared), DataLoader(Subset(held_out, order[:cut]), **shared),
            len(train.classes))


class Normalise:
    def __init__(self, grey):
        mean, std = GREY if grey else COLOUR
        self.shift = torch.tensor(mean).mul(255).view(1, -1, 1, 1)
        self.scale = torch.tensor(std).mul(255).reciprocal().view(1, -1, 1, 1)

    def __call__(self, pixels):
        return pixels.contiguous(memory_format=torch.channels_last).float().sub_(self.shift).mul_(self.scale)


@torch.no_grad()
def accuracy(model, normalise, data):
    model.eval()
    right = total = 0
    for pixels, target in data:
        right += (model(normalise(pixels)).argmax(1) == target).sum().item()
        total += len(target)
    model.train()
    return right / total


def train(arguments):
    torch.manual_seed(arguments.seed)
    data, held_out, classes = loaders(arguments)
    normalise = Normalise(arguments.grey)
    network = resnet18(num_classes=classes) if arguments.model == "resnet18" else networks.Cnn(classes, 1 if arguments.grey else 3)
    model = network.to(memory_format=torch.channels_last)
    rate = 0.4 * arguments.batch / 256
    steps = arguments.steps or arguments.epochs * len(data)
    optimizer = torch.optim.SGD(networks.decay_groups(model, 5e-4), rate, momentum=0.9, nesterov=True, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=max(2, steps), pct_start=0.2,
                                                   cycle_momentum=False)
    tell("ready")
    taken = 0
    while taken < steps:
        for pixels, target in data:
            loss = F.cross_entropy(model(normalise(pixels)), target, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            taken += 1
            if taken == 1:
                tell("step", loss=loss.item())
            if taken == steps:
                break
        reached = accuracy(model, normalise, held_out)
        torch.save(model.state_dict(), arguments.out)
    tell("weights", accuracy=reached)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--out", required=True)
    parser.add_argument("--grey", action="store_true", help="images have one channel and are not mirrored")
    parser.add_argument("--photographs", action="store_true", help="random-resized crops of images of any size")
    parser.add_argument("--model", choices=("cnn", "resnet18"), default="cnn")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0, help="overrides epochs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="threads per operator; default: torch's")
    arguments = parser.parse_args()
    if arguments.threads > 0:
        torch.set_num_threads(arguments.threads)
    train(arguments)


if __name__ == "__main__":
    main()
