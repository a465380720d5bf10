# SPDX-License-Identifier: Apache-2.0
"""The networks that Stoker is measured against, written as plain Python PyTorch: the same layers, parameter names and initial
distributions as Stoker's own, in PyTorch's usual words. Imported by the scripts of this folder.
"""
import math

from torch import nn
from torch.nn import functional as F


def mlp(inputs=64, hidden=64, outputs=10):
    """The perceptron of the smallest step: 64-64-64-10."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
                         nn.Linear(hidden, outputs))


def conv3x3(inputs, outputs):
    conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return conv


class Widening(nn.Module):
    """A convolution to another width, pooled by 2 before its norm."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv, self.bn = conv3x3(inputs, outputs), nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.bn(F.max_pool2d(self.conv(x), 2)), inplace=True)


class Residual(nn.Module):
    """x + f(x), f being two convolutions at the same width."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(width, width), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv3x3(width, width), nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)), inplace=True) + x


class Cnn(nn.Module):
    """src/stoker/models/cnn.cpp, the default for small pictures. State names are those of `stoker export`."""

    def __init__(self, classes=10, channels=3, widths=(32, 64, 128), logit_scale=0.125):
        super().__init__()
        stem, width1, width2 = widths
        self.stem = Widening(channels, stem)
        self.layer1 = nn.Sequential()
        self.layer1.add_module("widen", Widening(stem, width1))
        self.layer1.add_module("residual", Residual(width1))
        self.layer2 = nn.Sequential()
        self.layer2.add_module("widen", Widening(width1, width2))
        self.layer2.add_module("residual", Residual(width2))
        self.fc = nn.Linear(width2, classes, bias=False)
        self.logit_scale = logit_scale

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(self.stem(x))).amax((2, 3))) * self.logit_scale


def resnet(depth, classes=10):
    """torchvision's own; the initial distributions are Stoker's too."""
    from torchvision import models  # not at the top: it takes a second, and most callers want no ResNet
    return getattr(models, f"resnet{depth}")(num_classes=classes)


class Block(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for linear, residual in ((self.attn, False), (self.proj, True), (self.up, False), (self.down, True)):
            nn.init.normal_(linear.weight, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)
            nn.init.zeros_(linear.bias)

    def forward(self, x):
        rows, tokens, width = x.shape
        q, k, v = (part.view(rows, tokens, self.heads, -1).transpose(1, 2)
                   for part in self.attn(self.ln_1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """src/stoker/models/gpt.cpp without dropout; the defaults are nanoGPT's setting for a CPU."""

    def __init__(self, vocabulary, context=64, layers=4, heads=4, width=128):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads, layers) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)

    def loss(self, ids, target, reduction="mean"):
        return F.cross_entropy(self(ids).flatten(0, 1), target.flatten(), reduction=reduction)


def decay_groups(model, weight_decay):
    """For torch.optim: as in Stoker, norms and biases (what has one dimension) are never decayed."""
    parameters = list(model.parameters())
    return [{"params": [each for each in parameters if each.dim() > 1], "weight_decay": weight_decay},
            {"params": [each for each in parameters if each.dim() < 2], "weight_decay": 0.0}]
