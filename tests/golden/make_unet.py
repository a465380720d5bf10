# SPDX-License-Identifier: Apache-2.0
"""Names, shapes, float64 outputs and gradients of a plain U-Net in PyTorch: python3 make_unet.py writes unet.h."""
import torch
from torch import nn

import cpp_table
import network_table

CHANNELS, CLASSES, WIDTH, DEPTH = 3, 4, 4, 2


class Level(nn.Module):
    def __init__(self, inputs, outputs, up):
        super().__init__()
        if up:
            self.narrow = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())).relu()


class Unet(nn.Module):
    """The paper's order on the way up: the resolution is doubled first, then a convolution halves the channels."""

    def __init__(self):
        super().__init__()
        for level in range(DEPTH + 1):
            inputs = CHANNELS if level == 0 else WIDTH << (level - 1)
            self.add_module(f"down{level}", Level(inputs, WIDTH << level, up=False))
        for level in reversed(range(DEPTH)):
            self.add_module(f"up{level}", Level(WIDTH << (level + 1), WIDTH << level, up=True))
        self.head = nn.Conv2d(WIDTH, CLASSES, 1)

    def forward(self, x):
        skips = []
        for level in range(DEPTH + 1):
            x = self.get_submodule(f"down{level}")(x if level == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        for level in reversed(range(DEPTH)):
            up = self.get_submodule(f"up{level}")
            x = up.narrow(nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False))
            x = up(torch.cat([skips[level], x], 1))
        return self.head(x)


network = Unet().double()
state = network_table.state_of(network)
network_table.fill(state)
x = network_table.wave((2, CHANNELS, 8, 12))
lines = network_table.state_lines("unet_state", state)
with torch.no_grad():
    lines.append(cpp_table.array("unet_eval", network.eval()(x).flatten()[::7]))
y = network.train()(x)
(y * network_table.wave(y.shape)).sum().backward()
lines.append(cpp_table.array("unet_train", y.detach().flatten()[::7]))
lines.append(cpp_table.array("unet_gradients", network_table.gradient_sums(network)))
cpp_table.write("unet.h", "make_unet.py", lines, network_table.INCLUDES)
