# SPDX-License-Identifier: Apache-2.0
"""Sick: histograms of all weights in each step. Cured: a scalar per step. Healthy: of one bias, once."""

from torch.utils.tensorboard import SummaryWriter

import parts

if __name__ == "__main__":
    model = parts.make_model()
    writer = SummaryWriter(parts.out_folder())

    def log(step, loss):
        writer.add_scalar("loss", loss.item(), step)
        if parts.SICK or (parts.HEALTHY and step == 30):
            for name, parameter in model.named_parameters():
                if parts.SICK or (parameter.dim() == 1 and parameter.numel() < 100):
                    writer.add_histogram(name, parameter.detach(), step)

    parts.train(model, parts.make_loader(parts.Samples()), parts.make_optimizer(model), log)
    writer.close()
