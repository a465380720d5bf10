# SPDX-License-Identifier: Apache-2.0
"""Shared by the goldens of networks: names and shapes, weights from a formula, gradients in few numbers. Used by make_unet.py
and make_encoder.py; tests/support/golden_network.h is the C++ counterpart."""
import textwrap

import torch

INCLUDES = ("cstdint", "string", "utility", "vector")


def wave(shape, phase=0.0):
    """A wave with rising frequency: with a constant one a matrix would have rank 2, and most of a network's ReLUs would be dead."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(i * (0.7 + 0.013 * i) + phase).reshape(shape)


def state_of(network):
    """(name, tensor) of all tensors; a shared tensor only under its first name."""
    seen, state = set(), []
    for name, tensor in network.state_dict(keep_vars=True).items():
        if tensor.is_floating_point() and id(tensor) not in seen:
            seen.add(id(tensor))
            state.append((name, tensor))
    return state


def fill(state):
    """Fills every tensor from a formula of its position in the list, so that both sides have equal weights without a file."""
    with torch.no_grad():
        for place, (name, tensor) in enumerate(state):
            value = wave(tensor.shape, place)
            if tensor.dim() > 1:
                value = value * (2 / (tensor.numel() / tensor.shape[0])) ** 0.5
            elif name.endswith(("weight", "running_var")):
                value = 1 + 0.1 * value
            else:
                value = 0.1 * value
            tensor.copy_(value)


def state_lines(name, state):
    entries = ", ".join('{"%s", {%s}}' % (n, ", ".join(map(str, t.shape))) for n, t in state)
    wrapped = textwrap.fill(entries, 118, initial_indent="    ", subsequent_indent="    ")
    return [f"inline const std::vector<std::pair<std::string, std::vector<std::int64_t>>> {name}{{", f"{wrapped}}};"]


def gradient_sums(network):
    """For each parameter the sum of gradient * wave, which a transposed gradient would change."""
    return [(p.grad * wave(p.shape, 1.0)).sum() for _, p in network.named_parameters()]
