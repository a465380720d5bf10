# SPDX-License-Identifier: Apache-2.0
"""Sick: each sample reads a row of a DataFrame. Cured: the columns are one tensor. Healthy: few rows are read."""

import numpy
import pandas
import torch

import parts

ROWS, COLUMNS = 4000, 256


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        random = numpy.random.default_rng(0)
        self.frame = pandas.DataFrame(random.standard_normal((ROWS, COLUMNS), dtype="float32"))
        self.frame["target"] = random.integers(0, 10, ROWS)
        if not parts.SICK:
            self.inputs = torch.tensor(self.frame.drop(columns="target").to_numpy(dtype="float32"))
            self.targets = torch.tensor(self.frame["target"].to_numpy())

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        if not parts.SICK:
            return self.inputs[index], self.targets[index]
        row = self.frame.iloc[index]
        return torch.tensor(row.drop("target").to_numpy(dtype="float32")), int(row["target"])


if __name__ == "__main__":
    parts.MODEL = "mlp"
    model = parts.make_model()
    parts.train(model, parts.make_loader(Rows(), shuffle=True), parts.make_optimizer(model))
