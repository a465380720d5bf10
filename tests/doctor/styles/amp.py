# SPDX-License-Identifier: Apache-2.0
"""Mixed precision as its recipe writes it: autocast and a gradient scaler, here in bf16 on a CPU."""

import torch
from torch import nn

import faults

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
batch_size, in_size, out_size, num_layers = 64, 1024, 256, 3


def make_model(in_size, out_size, num_layers):
    layers = []
    for _ in range(num_layers - 1):
        layers.append(nn.Linear(in_size, in_size))
        layers.append(nn.ReLU())
    layers.append(nn.Linear(in_size, out_size))
    return nn.Sequential(*layers).to(device)


class Regression(torch.utils.data.Dataset):
    def __init__(self, count):
        self.inputs, self.targets = torch.randn(count, in_size), torch.randn(count, out_size)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.targets[index]


if __name__ == "__main__":
    data = torch.utils.data.DataLoader(faults.Slow(Regression(4096)), batch_size=batch_size, shuffle=True)
    net = make_model(in_size, out_size, num_layers)
    opt = torch.optim.SGD(net.parameters(), lr=0.001, fused=True)
    loss_fn = nn.MSELoss()
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
    step = 0
    while step < faults.STEPS:
        for inputs, targets in data:
            with torch.autocast(device_type=device, dtype=torch.float16 if device == "cuda" else torch.bfloat16):
                output = net(inputs.to(device))
                loss = loss_fn(output, targets.to(device))
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
            faults.each_step(net, loss)
            step += 1
            if step == faults.STEPS:
                break
    faults.say(net)
