# SPDX-License-Identifier: Apache-2.0
"""The output dtype of each operator of our networks under torch.autocast on the CPU: make_autocast.py writes
autocast.tsv. autocast_test.cpp has the same list of operators."""
import pathlib

import torch
import torch.nn.functional as F

import versions

torch.set_num_threads(1)
INDEX = torch.tensor([0, 1])
# v(shape) makes a new tensor; the first one may have another dtype than the rest.
OPERATORS = {
    "conv2d": lambda v: F.conv2d(v(2, 3, 4, 4), v(4, 3, 3, 3)),
    "conv_transpose2d": lambda v: F.conv_transpose2d(v(2, 3, 4, 4), v(3, 4, 2, 2)),
    "linear": lambda v: F.linear(v(2, 3), v(4, 3), v(4)),
    "matmul": lambda v: torch.matmul(v(2, 3), v(3, 4)),
    "mm": lambda v: torch.mm(v(2, 3), v(3, 4)),
    "bmm": lambda v: torch.bmm(v(2, 2, 3), v(2, 3, 4)),
    "addmm": lambda v: torch.addmm(v(4), v(2, 3), v(3, 4)),
    "scaled_dot_product_attention": lambda v: F.scaled_dot_product_attention(v(1, 1, 2, 4), v(1, 1, 2, 4), v(1, 1, 2, 4)),
    "batch_norm": lambda v: F.batch_norm(v(2, 3, 4, 4), torch.zeros(3), torch.ones(3), v(3), v(3), training=True),
    "layer_norm": lambda v: F.layer_norm(v(2, 4), (4,), v(4), v(4)),
    "softmax": lambda v: torch.softmax(v(2, 4), 1),
    "log_softmax": lambda v: torch.log_softmax(v(2, 4), 1),
    "logsumexp": lambda v: torch.logsumexp(v(2, 4), 1),
    "cross_entropy_loss": lambda v: F.cross_entropy(v(2, 4), INDEX),
    "mse_loss": lambda v: F.mse_loss(v(2, 4), v(2, 4)),
    "gelu": lambda v: F.gelu(v(2, 4), approximate="tanh"),
    "relu": lambda v: torch.relu(v(2, 4)),
    "tanh": lambda v: torch.tanh(v(2, 4)),
    "sigmoid": lambda v: torch.sigmoid(v(2, 4)),
    "exp": lambda v: torch.exp(v(2, 4)),
    "add": lambda v: v(2, 4) + v(2, 4),
    "add_": lambda v: v(2, 4).add_(v(2, 4)),
    "mul": lambda v: v(2, 4) * v(2, 4),
    "div": lambda v: v(2, 4) / 2,
    "masked_fill": lambda v: v(2, 4).masked_fill(torch.ones(4, dtype=torch.bool), 0),
    "cat": lambda v: torch.cat([v(2, 4), v(2, 4)]),
    "stack": lambda v: torch.stack([v(2, 4), v(2, 4)]),
    "embedding": lambda v: F.embedding(INDEX, v(5, 4)),
    "max_pool2d": lambda v: F.max_pool2d(v(2, 3, 4, 4), 2),
    "avg_pool2d": lambda v: F.avg_pool2d(v(2, 3, 4, 4), 2),
    "adaptive_avg_pool2d": lambda v: F.adaptive_avg_pool2d(v(2, 3, 4, 4), 1),
    "upsample_nearest2d": lambda v: F.interpolate(v(2, 3, 4, 4), scale_factor=2, mode="nearest"),
    "upsample_bilinear2d": lambda v: F.interpolate(v(2, 3, 4, 4), scale_factor=2, mode="bilinear"),
    "dropout": lambda v: F.dropout(v(2, 4), 0.5),
    "amax": lambda v: torch.amax(v(2, 4)),
    "sum": lambda v: v(2, 4).sum(),
    "mean": lambda v: v(2, 4).mean(),
}


def outcome(operator, autocast, first, rest):
    dtypes = [first]

    def make(*shape):
        return torch.ones(shape, dtype=dtypes.pop() if dtypes else rest)
    try:
        with torch.autocast("cpu", dtype=autocast):
            return str(operator(make).dtype).removeprefix("torch.")
    except RuntimeError:
        return "refused"


lines = [f"# Made by tests/golden/make_autocast.py with {versions.text()}; do not edit.",
         "# autocast | operator | out of float32 inputs | out of half inputs | first input half, the others float32"]
for half in (torch.bfloat16, torch.float16):
    for name, operator in OPERATORS.items():
        columns = [outcome(operator, half, first, rest)
                   for first, rest in ((torch.float32, torch.float32), (half, half), (half, torch.float32))]
        lines.append(" ".join([str(half).removeprefix("torch."), name, *columns]))
(pathlib.Path(__file__).parent / "autocast.tsv").write_text("\n".join(lines) + "\n")
