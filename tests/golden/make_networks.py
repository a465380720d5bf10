# SPDX-License-Identifier: Apache-2.0
"""Names, shapes, logits, losses, gradients and running statistics of torchvision's ResNet-18, -34 and -50 and of
transformers' GPT-2, in float64: make_networks.py writes networks.safetensors.

Each ResNet has two sets of weights. "loud", for float64, uses both sides of every ReLU. "calm", for float32, keeps inputs
far from the kink, because there one unit in the last place switches a gradient on or off and a deep ResNet's float32
gradients become chaotic (PyTorch's own differ from its float64 ones by up to 0.2 of the largest). The gradients of "calm"
are from evaluation mode: in training mode without kinks most biases cancel out. This script checks that each set is well
conditioned: the same sums in another order must agree twice as closely as the tests require."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import torch.nn.functional as F
import torchvision
import transformers

import draws
import golden_file

torch.set_num_threads(1)
CLASSES, BATCH, SIZE = 5, 4, 64
SAFE = {torch.float64: 5e-13, torch.float32: 5e-6}


def norm_weight(name, shape, calm, last):
    """Values for a batch norm's weight or bias; last: it is the norm before an addition."""
    if name.endswith("weight"):
        low, high = (0.15, 0.3) if calm else (0.1, 0.3) if last else (0.5, 1.0)
        return draws.uniform(name, shape, low, high)
    if not calm:
        return draws.uniform(name, shape, -0.25, 0.25)
    if last:
        return draws.uniform(name, shape, 0.3, 0.45)
    return draws.uniform(name, shape, 1, 1.5) * draws.uniform(name + " sign", shape, -1, 1).sign()


def fill(network, manner, bottleneck):
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if name.endswith("num_batches_tracked"):
                continue
            shape = tuple(tensor.shape)
            if ("bn" in name or "downsample.1" in name) and "running" not in name:
                last = name.startswith("layer") and (".bn3" if bottleneck else ".bn2") in name or ".downsample." in name
                tensor.copy_(norm_weight(name, shape, manner == "calm", last))
            else:
                tensor.copy_(draws.weight(name, shape))


def passes(name, manner, dtype, layout):
    """All results of one network, in full."""
    network = getattr(torchvision.models, name)(num_classes=CLASSES).to(dtype=dtype, memory_format=layout)
    fill(network, manner, name == "resnet50")
    pixels = draws.uniform("pixels", (BATCH, 3, SIZE, SIZE), -2, 2).to(dtype).contiguous(memory_format=layout)
    target = draws.below("classes", (BATCH,), CLASSES)
    values = {}
    for mode in ("eval", "train"):
        network.train(mode == "train")
        network.zero_grad()
        logits = network(pixels)
        loss = F.cross_entropy(logits, target, label_smoothing=0.1)
        loss.backward()
        values |= {f"{mode}.logits": logits, f"{mode}.loss": loss}
        if mode == ("eval" if manner == "calm" else "train"):
            values |= {f"{mode}.grad.{n}": p.grad.clone() for n, p in network.named_parameters()}
    values |= {f"after.{n}": b for n, b in network.named_buffers() if "running" in n}
    return {key: value.detach().double() for key, value in values.items()}


def check_condition(name, manner, values):
    dtype = torch.float32 if manner == "calm" else torch.float64
    other = passes(name, manner, dtype, torch.channels_last)
    worst = max(((other[key] - value).abs().max() / value.abs().max()).item() for key, value in values.items())
    print(f"{name} {manner}: {dtype} in another order differs by {worst:.1e} at most")
    assert worst < SAFE[dtype], "badly conditioned: change the weights"


def resnets(tensors, metadata):
    for name in ("resnet18", "resnet34", "resnet50"):
        state = getattr(torchvision.models, name)(num_classes=CLASSES).state_dict()
        rows = [f"{n} {list(t.shape)}" for n, t in state.items() if not n.endswith("num_batches_tracked")]
        metadata[name] = "\n".join(sorted(rows))
        for manner in ("loud", "calm"):
            values = passes(name, manner, torch.float64, torch.contiguous_format)
            check_condition(name, manner, values)
            for key, value in values.items():
                tensor_name = key.removeprefix("after.").split(".grad.")[-1]
                small = key.endswith(("logits", "loss"))
                tensors[f"{name}.{manner}.{key}"] = value if small else draws.sample(tensor_name, value)


def gpt(tensors, metadata):
    config = transformers.GPT2Config(vocab_size=61, n_positions=12, n_embd=32, n_layer=3, n_head=4, embd_pdrop=0,
                                     attn_pdrop=0, resid_pdrop=0, attn_implementation="eager")
    network = transformers.GPT2LMHeadModel(config).double()
    ours = {n.removeprefix("transformer."): p for n, p in network.named_parameters()}
    metadata["gpt"] = "\n".join(sorted(f"{n} {list(p.shape)}" for n, p in ours.items()))
    with torch.no_grad():
        for name, parameter in ours.items():
            parameter.copy_(draws.weight(name, tuple(parameter.shape)))
    target = draws.below("targets", (3, 10), 61)
    target[0, 7:] = -100
    logits = network(draws.below("tokens", (3, 10), 61)).logits
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
    loss.backward()
    tensors |= {"gpt.logits": logits, "gpt.loss": loss}
    tensors |= {f"gpt.grad.{n}": draws.sample(n, p.grad) for n, p in ours.items()}


if __name__ == "__main__":
    tensors, metadata = {}, {}
    resnets(tensors, metadata)
    gpt(tensors, metadata)
    golden_file.write("networks.safetensors", "make_networks.py", tensors, metadata)
