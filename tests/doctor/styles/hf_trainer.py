# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer on a small BERT, as its guides write it."""

import os

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

import faults


class Texts(torch.utils.data.Dataset):
    def __init__(self, count):
        self.ids = torch.randint(5, 1000, (count, 64), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": index % 2}


class Faults(TrainerCallback):
    def on_step_end(self, args, state, control, model=None, **kwargs):
        faults.each_step(model, torch.tensor(1.0))


if __name__ == "__main__":
    torch.manual_seed(0)
    config = BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512)
    model = BertForSequenceClassification(config)
    arguments = TrainingArguments(output_dir=os.environ.get("CASE_OUT", "/tmp"), max_steps=faults.STEPS, report_to=[],
                                  per_device_train_batch_size=32, save_strategy="no", logging_strategy="no",
                                  disable_tqdm=True, use_cpu=True, optim="adamw_torch_fused")  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=faults.Slow(Texts(3200)), callbacks=[Faults()]).train()
    faults.say(model)
