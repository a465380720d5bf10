# SPDX-License-Identifier: Apache-2.0
"""Cross-entropy of PyTorch 2.11, sums and gradients: python3 make_ops.py writes cross_entropy.h."""
import torch
import torch.nn.functional as F

import cpp_table

torch.set_num_threads(1)

logits = (3 * torch.sin(torch.arange(20, dtype=torch.float64) * 1.3)).reshape(5, 4)
target = torch.tensor([0, 3, 1, 1, 2])
weights = torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)
lines = []
cases = [("plain", 0, None), ("smoothed", 0.1, None), ("weighted", 0, weights), ("both", 0.2, weights)]
for name, smoothing, weight in cases:
    x = logits.clone().requires_grad_()
    total = F.cross_entropy(x, target, weight=weight, reduction="sum", label_smoothing=smoothing)
    mean = F.cross_entropy(x, target, weight=weight, label_smoothing=smoothing)
    total.backward()
    lines.append(cpp_table.array(f"cross_entropy_{name}", [total, mean, *x.grad.flatten()]))
cpp_table.write("cross_entropy.h", "make_ops.py", lines)
