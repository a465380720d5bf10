# SPDX-License-Identifier: Apache-2.0
"""Optimizers, schedules and clipping of PyTorch 2.11: python3 make_optim.py writes optimizers.h and schedules.h."""
import torch
from torch.optim import lr_scheduler as S

import cpp_table

torch.set_num_threads(1)


def gradient(step, first, count):
    i = torch.arange(first, first + count, dtype=torch.float64)
    return torch.sin(0.7 * step + 0.3 * i) * (1 + 0.1 * step)


def run(make):
    weight = torch.sin(torch.arange(1, 13, dtype=torch.float64)).reshape(3, 4).requires_grad_()
    bias = torch.cos(torch.arange(1, 5, dtype=torch.float64)).requires_grad_()
    optimizer = make([{"params": [weight]}, {"params": [bias], "weight_decay": 0.0}])
    values = []
    for step in range(10):
        weight.grad = gradient(step, 0, 12).reshape(3, 4)
        bias.grad = gradient(step, 12, 4)
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (1 + step)
        optimizer.step()
        if step in (2, 9):
            values += weight.flatten().tolist() + bias.tolist()
    return values


plain = {"foreach": False, "fused": False}
kinds = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.05, **plain),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.05, betas=(0.8, 0.95), eps=1e-6, **plain),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05, **plain),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05, momentum=0.9, **plain),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05, momentum=0.8, nesterov=True, **plain),
}
lines = ["// The 16 values after 3 steps, then those after 10."]
lines += [cpp_table.array(name, run(make)) for name, make in kinds.items()]

grads = [gradient(3, 0, 12).reshape(3, 4), gradient(4, 12, 4)]
parameters = [torch.zeros_like(g).requires_grad_() for g in grads]
for parameter, grad in zip(parameters, grads):
    parameter.grad = grad.clone()
norm = torch.nn.utils.clip_grad_norm_(parameters, 1.5)
lines.append("// The norm before, then the clipped gradients.")
lines.append(cpp_table.array("clipped", [norm, *parameters[0].grad.flatten(), *parameters[1].grad]))
cpp_table.write("optimizers.h", "make_optim.py", lines)


def schedule(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    scheduler = make(optimizer)
    values = []
    for _ in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return values


def warmed(optimizer, body):
    warmup = S.LambdaLR(optimizer, lambda step: (step + 1) / 5 if step < 5 else 1)
    return S.SequentialLR(optimizer, [warmup, body(optimizer)], [5])


schedules = {
    "cosine": (lambda o: S.CosineAnnealingLR(o, T_max=20, eta_min=0.04), 20),
    "linear": (lambda o: S.LinearLR(o, start_factor=1, end_factor=0.1, total_iters=20), 20),
    "step": (lambda o: S.StepLR(o, step_size=6, gamma=0.3), 20),
    "one_cycle": (lambda o: S.OneCycleLR(o, max_lr=0.4, total_steps=20, pct_start=0.3), 20),
    "one_cycle_wide": (lambda o: S.OneCycleLR(
        o, max_lr=0.4, total_steps=37, pct_start=0.23, div_factor=10, final_div_factor=100), 37),
    "cosine_warm": (lambda o: warmed(o, lambda q: S.CosineAnnealingLR(q, T_max=20)), 25),
    "constant_warm": (lambda o: S.LambdaLR(o, lambda step: min(1, (step + 1) / 5)), 12),
}
cpp_table.write("schedules.h", "make_optim.py",
                [cpp_table.array(f"schedule_{name}", schedule(*each)) for name, each in schedules.items()])
