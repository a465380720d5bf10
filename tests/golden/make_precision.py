# SPDX-License-Identifier: Apache-2.0
"""torch.amp.GradScaler of PyTorch 2.11 with injected overflows: python3 make_precision.py writes grad_scaler.h."""
import torch

import cpp_table

torch.set_num_threads(1)

BAD = {2: float("inf"), 3: float("nan"), 9: float("-inf")}
parameter = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([parameter], lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)
rows = []
for step in range(14):
    loss = (parameter * torch.tensor([1.0, 2.0, 3.0])).sum()
    scaler.scale(loss).backward()
    if step in BAD:
        parameter.grad[1] = BAD[step]
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    rows += [scaler.get_scale(), scaler._get_growth_tracker(), *parameter.tolist()]
cpp_table.write("grad_scaler.h", "make_precision.py",
                ["// For each of 14 steps: scale, growth tracker, three parameters; steps 2, 3 and 9 overflow.",
                 cpp_table.array("grad_scaler", rows)])
