# SPDX-License-Identifier: Apache-2.0
"""The training loop of a beginner's tutorial: a CNN on pictures of ten classes."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import faults


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(64 * 12 * 12, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def train(model, device, train_loader, optimizer, steps):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        faults.each_step(model, loss)
        if batch_idx % 10 == 0:
            print(f"step {batch_idx}: loss {loss.item():.6f}")
        if batch_idx + 1 == steps:
            break


def test(model, device, test_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data.to(device))
            correct += output.argmax(dim=1).eq(target.to(device)).sum().item()
    print(f"correct: {correct}")


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(32 * 100, 1, 28, 28), torch.randint(10, (32 * 100,)))
    train_loader = DataLoader(faults.Slow(data), batch_size=32, shuffle=True)
    test_loader = DataLoader(TensorDataset(*data[:128]), batch_size=64)
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    train(model, device, train_loader, optimizer, faults.STEPS)
    test(model, device, test_loader)
    faults.say(model)


if __name__ == "__main__":
    main()
