# SPDX-License-Identifier: Apache-2.0
"""Losses and normalisation layers of PyTorch in float64, with gradients: make_losses.py writes losses.safetensors."""
import torch
import torch.nn.functional as F

import draws
import golden_file

torch.set_num_threads(1)


def leaf(name, shape, low, high):
    return draws.uniform(name, shape, low, high).requires_grad_()


def cross_entropy(tensors):
    target = draws.below("target", (9,), 4)
    target[2] = target[7] = -100
    weights = torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)
    for name, smoothing, weight in [("plain", 0, None), ("smoothed", 0.1, None), ("weighted", 0, weights),
                                    ("both", 0.2, weights)]:
        logits = leaf("logits", (9, 4), -4, 4)
        total = F.cross_entropy(logits, target, weight, reduction="sum", label_smoothing=smoothing)
        total.backward()
        tensors |= {f"{name}.sum": total, f"{name}.grad": logits.grad}


def mixed(tensors):
    """Rows with two classes each, with shares as probabilities."""
    own, other = draws.below("own", (9,), 4), draws.below("other", (9,), 4)
    share = draws.uniform("share", (9,), 0, 1).float().double()
    share[3], share[4] = 0, 1
    weights = torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)
    soft = share[:, None] * F.one_hot(own, 4) + (1 - share)[:, None] * F.one_hot(other, 4)
    for name, smoothing, weight in [("mixed", 0, None), ("mixed smoothed", 0.1, None), ("mixed both", 0.2, weights)]:
        logits = leaf("logits", (9, 4), -4, 4)
        total = F.cross_entropy(logits, soft, weight, reduction="sum", label_smoothing=smoothing)
        total.backward()
        tensors |= {f"{name}.sum": total, f"{name}.grad": logits.grad}
    tensors["mixed.mean"] = F.cross_entropy(leaf("logits", (9, 4), -4, 4), soft)


def chunked(tensors):
    """linear_cross_entropy_sum computes this in pieces; here it is computed at once."""
    target = draws.below("row", (11,), 13)
    target[4] = target[10] = -100
    hidden, table = leaf("hidden", (11, 6), -2, 2), leaf("table", (13, 6), -2, 2)
    total = F.cross_entropy(F.linear(hidden, table), target, reduction="sum")
    (total * 0.3).backward()
    tensors |= {"chunked.sum": total, "chunked.hidden": hidden.grad, "chunked.table": table.grad}


def batch_norm(tensors):
    """Twelve values per channel, so that the unbiased running variance matters. The last channel varies so little that eps
    matters."""
    layer = torch.nn.BatchNorm2d(3).double()
    with torch.no_grad():
        for name, tensor in layer.state_dict().items():
            if name != "num_batches_tracked":
                tensor.copy_(draws.weight(f"norm.{name}", (3,)))
    scale = torch.tensor([1.0, 3.0, 0.005], dtype=torch.float64).reshape(1, 3, 1, 1)
    for number in range(2):
        x = (draws.uniform(f"norm {number}", (3, 3, 2, 2), -1, 2) * scale).requires_grad_()
        y = layer(x)
        layer.zero_grad()
        (y * draws.uniform(f"norm up {number}", (3, 3, 2, 2), -1, 1)).sum().backward()
        tensors |= {f"batch_norm.{number}.y": y, f"batch_norm.{number}.x_grad": x.grad,
                    f"batch_norm.{number}.weight_grad": layer.weight.grad.clone(),
                    f"batch_norm.{number}.bias_grad": layer.bias.grad.clone(),
                    f"batch_norm.{number}.running_mean": layer.running_mean.clone(),
                    f"batch_norm.{number}.running_var": layer.running_var.clone()}
    layer.eval()
    tensors["batch_norm.eval"] = layer(draws.uniform("norm 0", (3, 3, 2, 2), -1, 2) * scale)


def layer_norm(tensors):
    """The last row varies so little that eps matters."""
    weight, bias = leaf("ln.weight", (6,), 0.5, 1.5), leaf("ln.bias", (6,), -0.25, 0.25)
    scale = torch.tensor([1.0, 5.0, 0.005], dtype=torch.float64).reshape(3, 1)
    x = (draws.uniform("ln x", (3, 6), -1, 2) * scale).requires_grad_()
    y = F.layer_norm(x, (6,), weight, bias)
    (y * draws.uniform("ln up", (3, 6), -1, 1)).sum().backward()
    tensors |= {"layer_norm.y": y, "layer_norm.x_grad": x.grad, "layer_norm.weight_grad": weight.grad,
                "layer_norm.bias_grad": bias.grad}


if __name__ == "__main__":
    tensors = {}
    for part in (cross_entropy, mixed, chunked, batch_norm, layer_norm):
        part(tensors)
    golden_file.write("losses.safetensors", "make_losses.py", tensors)
