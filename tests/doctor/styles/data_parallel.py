# SPDX-License-Identifier: Apache-2.0
"""DataParallel as its tutorial writes it; on a machine without GPUs it runs the network itself."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

import faults

torch.manual_seed(0)
input_size, output_size, batch_size, data_size = 512, 10, 64, 4096
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class RandomDataset(Dataset):
    def __init__(self, size, length):
        self.len = length
        self.data = torch.randn(length, size)

    def __getitem__(self, index):
        return self.data[index]

    def __len__(self):
        return self.len


class Model(nn.Module):
    def __init__(self, input_size, output_size):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(input_size, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(),
                                    nn.Linear(2048, output_size))  # fmt: skip

    def forward(self, input):
        return self.layers(input)


if __name__ == "__main__":
    rand_loader = DataLoader(dataset=faults.Slow(RandomDataset(input_size, data_size)), batch_size=batch_size, shuffle=True)
    model = nn.DataParallel(Model(input_size, output_size)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    step = 0
    while step < faults.STEPS:
        for data in rand_loader:
            output = model(data.to(device))
            loss = output.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            faults.each_step(model, loss)
            step += 1
            if step == faults.STEPS:
                break
    faults.say(model)
