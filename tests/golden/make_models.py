# SPDX-License-Identifier: Apache-2.0
"""Names, shapes and float64 outputs of torchvision 0.26's ResNets: python3 make_models.py writes resnets.h."""
import textwrap

import torch
import torchvision

import cpp_table


def fill(state):
    """Every tensor a formula of its place in the list, so that both sides have equal weights without a file."""
    for k, (name, tensor) in enumerate(state):
        wave = torch.sin(torch.arange(tensor.numel(), dtype=torch.float64) * 0.7 + k).reshape(tensor.shape)
        if tensor.dim() > 1:
            value = wave * (2 / (tensor.numel() / tensor.shape[0])) ** 0.5
        elif name.endswith(("weight", "running_var")):
            value = 1 + 0.1 * wave
        else:
            value = 0.1 * wave
        tensor.copy_(value)


lines = []
for name, size in [("resnet18", 64), ("resnet50", 64)]:
    network = getattr(torchvision.models, name)(num_classes=5).double()
    state = [(n, t) for n, t in network.state_dict().items() if not n.endswith("num_batches_tracked")]
    entries = ", ".join('{"%s", {%s}}' % (n, ", ".join(map(str, t.shape))) for n, t in state)
    wrapped = textwrap.fill(entries, 118, initial_indent="    ", subsequent_indent="    ")
    lines.append(f"inline const std::vector<std::pair<std::string, std::vector<std::int64_t>>> {name}_state{{")
    lines.append(f"{wrapped}}};")
    with torch.no_grad():
        fill(state)
        x = torch.sin(torch.arange(2 * 3 * size * size, dtype=torch.float64) * 0.01).reshape(2, 3, size, size)
        network.eval()
        lines.append(cpp_table.array(f"{name}_eval", network(x).flatten()))
        network.train()
        lines.append(cpp_table.array(f"{name}_train", network(x).flatten()))
        lines.append(cpp_table.array(f"{name}_running_var", network.bn1.running_var[:8]))
cpp_table.write("resnets.h", "make_models.py", lines, ("cstdint", "string", "utility", "vector"))
