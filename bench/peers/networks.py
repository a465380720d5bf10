# SPDX-License-Identifier: Apache-2.0
"""The networks that Stoker is measured against, in plain Python PyTorch: the same layers, parameter names and initial
distributions as Stoker's own. Imported by the scripts of this folder.
"""
import math

from torch import nn
from torch.nn import functional as F


def mlp(inputs=64, hidden=64, outputs=10):
    """The perceptron of the smallest step: 64-64-64-10."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
                         nn.Linear(hidden, outputs))


def conv(inputs, outputs, side=3, stride=1):
    layer = nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class Widening(nn.Module):
    """A convolution to another width, pooled by 2 before its norm."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv, self.bn = conv(inputs, outputs), nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.bn(F.max_pool2d(self.conv(x), 2)), inplace=True)


class Residual(nn.Module):
    """x + f(x); f: two convolutions at the same width."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = conv(width, width), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width), nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)), inplace=True) + x


class Cnn(nn.Module):
    """src/stoker/models/cnn.cpp, the default for small images. State names equal those of `stoker export`."""

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


class ResidualBlock(nn.Module):
    """He et al., 2015: two convolutions of 3 x 3, or with expansion 4 a bottleneck with the stride in the middle
    one."""

    def __init__(self, inputs, width, stride, expansion):
        super().__init__()
        outputs = width * expansion
        self.conv1, self.bn1 = conv(inputs, width, *((3, stride) if expansion == 1 else (1, 1))), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, 3, 1 if expansion == 1 else stride), nn.BatchNorm2d(width)
        if expansion > 1:
            self.conv3, self.bn3 = conv(width, outputs, 1), nn.BatchNorm2d(outputs)
        self.deep = expansion > 1
        self.downsample = None if stride == 1 and inputs == outputs else nn.Sequential(
            conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        if self.deep:
            y = self.bn3(self.conv3(F.relu(y, inplace=True)))
        y += x if self.downsample is None else self.downsample(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    """torchvision's layers, names and initial distributions, for machines that only have torch."""

    def __init__(self, blocks, expansion, classes):
        super().__init__()
        self.conv1, self.bn1 = conv(3, 64, 7, 2), nn.BatchNorm2d(64)
        inputs = 64
        for stage, count in enumerate(blocks):
            layer = nn.Sequential()
            for block in range(count):
                width, stride = 64 << stage, 2 if stage > 0 and block == 0 else 1
                layer.append(ResidualBlock(inputs, width, stride, expansion))
                inputs = width * expansion
            self.add_module(f"layer{stage + 1}", layer)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def resnet(depth, classes=10):
    blocks, expansion = {18: ((2, 2, 2, 2), 1), 34: ((3, 4, 6, 3), 1), 50: ((3, 4, 6, 3), 4)}[depth]
    return ResNet(blocks, expansion, classes)


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


def gpt2(context=1024):
    """The smallest of the published ones: 124 million parameters."""
    return Gpt(50257, context, layers=12, heads=12, width=768)


def decay_groups(model, weight_decay):
    """For torch.optim: as in Stoker, norms and biases (tensors of one dimension) have no weight decay."""
    parameters = list(model.parameters())
    return [{"params": [each for each in parameters if each.dim() > 1], "weight_decay": weight_decay},
            {"params": [each for each in parameters if each.dim() < 2], "weight_decay": 0.0}]
