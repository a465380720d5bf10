# SPDX-License-Identifier: Apache-2.0
"""A language model of characters as its tutorials write it: own classes for text and batches, an LSTM, sampling."""

import argparse
import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

import faults

TEXT = "".join(chr(97 + (i * i + 3 * i) % 26) for i in range(40_000))


class CharDataset(Dataset):
    def __init__(self, text, block_size):
        chars = sorted(set(text))
        self.stoi = {ch: i for i, ch in enumerate(chars)}
        self.itos = {i: ch for ch, i in self.stoi.items()}
        self.block_size, self.text = block_size, text

    def __len__(self):
        return len(self.text) - self.block_size

    def __getitem__(self, idx):
        chunk = self.text[idx : idx + self.block_size + 1]
        dix = [self.stoi[s] for s in chunk]
        return torch.tensor(dix[:-1]), torch.tensor(dix[1:])


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.rnn = nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, idx):
        out, _ = self.rnn(self.embed(idx))
        return self.head(out)


def main(arguments):
    torch.manual_seed(1337)
    dataset = CharDataset(TEXT, arguments.block_size)
    loader = DataLoader(faults.Slow(dataset), shuffle=True, batch_size=arguments.batch_size)
    model = CharRNN(len(dataset.stoi), arguments.hidden)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
    criterion = nn.CrossEntropyLoss()
    for it, (x, y) in enumerate(loader):
        logits = model(x)
        loss = criterion(logits.view(-1, logits.size(-1)), y.view(-1))
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        faults.each_step(model, loss)
        if it + 1 == faults.STEPS:
            break
    print(f"loss {loss.item():.4f}")
    faults.say(model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--block-size", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=192)
    main(parser.parse_args(sys.argv[3:]))
