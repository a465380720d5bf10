# SPDX-License-Identifier: Apache-2.0
"""A LightningModule and a Trainer, as Lightning's first pages write them."""

import logging
import os
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import faults

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class LitAutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(28 * 28, 1024), nn.ReLU(), nn.Linear(1024, 64))
        self.decoder = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 28 * 28))

    def training_step(self, batch, batch_idx):
        x, _ = batch
        x = x.view(x.size(0), -1)
        loss = F.mse_loss(self.decoder(self.encoder(x)), x)
        self.log("train_loss", loss)
        return loss

    def on_train_batch_end(self, outputs, batch, batch_idx):
        faults.each_step(self, outputs["loss"])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3, fused=True)


if __name__ == "__main__":
    L.seed_everything(7, verbose=False)
    data = TensorDataset(torch.randn(64 * 100, 1, 28, 28), torch.zeros(64 * 100))
    loader = DataLoader(faults.Slow(data), batch_size=64, shuffle=True)
    module = LitAutoEncoder()
    trainer = L.Trainer(max_steps=faults.STEPS, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        detect_anomaly=faults.FAULT == "anomaly",  # Lightning sets it itself
                        default_root_dir=os.environ.get("CASE_OUT", "/tmp"))  # fmt: skip
    trainer.fit(module, loader)
    faults.say(module)
