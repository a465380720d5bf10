# SPDX-License-Identifier: Apache-2.0
"""Whole training steps of PyTorch in float64: make_steps.py writes steps.safetensors.

A small network with batch norm, a weighted and smoothed loss with a second term, clipping, a schedule and averages: 10
steps with each optimizer and schedule; the same with accumulation; AdamW and Adam with a warm second moment (a cold one
divides by nearly zero, too inexact for float32); and GradScaler with injected overflows. torch.amp leaves some things to
its caller; here they are done like in Stoker: a skipped step restores running statistics and does not update the
averages."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler as S
from torch.optim import swa_utils

import draws
import golden_file

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
CLASS_WEIGHTS = torch.tensor([0.5, 2.0, 1.25])
BATCH, STEPS, WARMUP, CLIP, EMA_DECAY, TERM_WEIGHT = 10, 10, 2, 2.5, 0.4, 0.25
plain = {"foreach": False, "fused": False}
OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.05, **plain),
    "adam": lambda p: torch.optim.Adam(p, lr=0.02, weight_decay=0.05, betas=(0.8, 0.95), eps=1e-6, **plain),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05, **plain),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05, momentum=0.9, **plain),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05, momentum=0.8, nesterov=True, **plain),
}


def warmed(optimizer, body):
    rise = S.LambdaLR(optimizer, lambda step: min(1, (step + 1) / WARMUP))
    return S.SequentialLR(optimizer, [rise, body], [WARMUP]) if body else rise


BODY = STEPS - WARMUP
SCHEDULES = {
    "constant": lambda o: warmed(o, None),
    "step": lambda o: warmed(o, S.StepLR(o, step_size=3, gamma=0.3)),
    "cosine": lambda o: warmed(o, S.CosineAnnealingLR(o, T_max=BODY, eta_min=0.1 * o.param_groups[0]["lr"])),
    "linear": lambda o: warmed(o, S.LinearLR(o, start_factor=1, end_factor=0.1, total_iters=BODY)),
    "one_cycle": lambda o: S.OneCycleLR(o, max_lr=o.param_groups[0]["lr"], total_steps=STEPS, cycle_momentum=False),
}


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(4)
        self.fc = nn.Linear(36, 3)
        with torch.no_grad():
            for name, tensor in self.state_dict().items():
                if not name.endswith("num_batches_tracked"):
                    tensor.copy_(draws.weight(name, tuple(tensor.shape)))

    def forward(self, x):
        x = torch.tanh(self.bn1(self.conv1(x)))
        return self.fc(torch.tanh(self.bn2(self.conv2(x))).flatten(1))


def statistics(network):
    return [b for n, b in network.named_buffers() if "running" in n]


class Training:
    def __init__(self, optimizer, schedule=None, microbatch=BATCH, scaler=None):
        self.network = Small()
        weights = [p for p in self.network.parameters() if p.dim() > 1]
        others = [p for p in self.network.parameters() if p.dim() == 1]  # biases and norms do not decay
        self.optimizer = OPTIMIZERS[optimizer]([{"params": weights}, {"params": others, "weight_decay": 0.0}])
        self.schedule = SCHEDULES[schedule](self.optimizer) if schedule else None
        self.microbatch, self.scaler = microbatch, scaler
        self.averages = swa_utils.AveragedModel(self.network, use_buffers=True)
        self.averages.n_averaged.fill_(1)  # start as a copy of the weights
        self.updates = 0
        self.losses, self.norms = [], []

    def backward(self, number):
        x = draws.uniform(f"x {number}", (BATCH, 2, 6, 6), -2, 2)
        y = draws.below(f"y {number}", (BATCH,), 3)
        self.optimizer.zero_grad()
        total = 0
        parts = -(-BATCH // self.microbatch)
        for part in range(parts):
            cut = slice(part * BATCH // parts, (part + 1) * BATCH // parts)
            logits, counted = self.network(x[cut]), y[cut] > 0
            entropy = F.cross_entropy(logits, y[cut], CLASS_WEIGHTS, reduction="sum", label_smoothing=0.1)
            squares = logits[counted].square().sum()
            loss = entropy / CLASS_WEIGHTS[y].sum() + TERM_WEIGHT * squares / (y > 0).sum()
            (self.scaler.scale(loss) if self.scaler else loss).backward()
            total += loss.item()
        if parts == 1:  # sum / weights must equal PyTorch's mean
            mean = F.cross_entropy(logits, y, CLASS_WEIGHTS, label_smoothing=0.1)
            assert abs(mean.item() - (entropy / CLASS_WEIGHTS[y].sum()).item()) < 1e-14
        self.losses.append(total)

    def average(self):
        """torch.optim.swa_utils' average with a decay that warms up: (1 + t) / (10 + t) at the t-th update."""
        self.updates += 1
        decay = min(EMA_DECAY, (1 + self.updates) / (10 + self.updates))
        self.averages.multi_avg_fn = swa_utils.get_ema_multi_avg_fn(decay)
        self.averages.update_parameters(self.network)

    def step(self, number, overflow=None):
        before = [b.clone() for b in statistics(self.network)]
        self.backward(number)
        if overflow is not None:
            name, value = overflow
            self.network.get_parameter(name).grad.view(-1)[1] = value
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), CLIP, foreach=False)
        self.norms.append(norm.item())
        if self.scaler:
            skipped = sum(v.item() for v in self.scaler._found_inf_per_device(self.optimizer).values()) > 0
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            skipped = False
            self.optimizer.step()
        if skipped:
            for buffer, old in zip(statistics(self.network), before):
                buffer.copy_(old)
        else:
            self.average()
        if self.schedule:
            self.schedule.step()

    def moments(self, name):
        zeros = {p: torch.zeros_like(p) for p in self.network.parameters()}
        return [self.optimizer.state.get(p, {}).get(name, zeros[p]) for p in self.network.parameters()]

    def state(self, *moments):
        """Parameters, running statistics, the averages of both, and moments, in one row."""
        lists = [list(self.network.parameters()), statistics(self.network), list(self.averages.module.parameters()),
                 statistics(self.averages.module), *[self.moments(name) for name in moments]]
        return torch.cat([t.detach().flatten().double() for each in lists for t in each])


def runs(tensors):
    clipped = []
    cases = [(o, s, BATCH) for o in OPTIMIZERS for s in SCHEDULES] + [(o, "cosine", 4) for o in OPTIMIZERS]
    for optimizer, schedule, microbatch in cases:
        training = Training(optimizer, schedule, microbatch)
        name = f"{optimizer}.{schedule}" + (".micro" if microbatch < BATCH else "")
        for number in range(STEPS):
            training.step(number)
            if number + 1 in (1, STEPS):
                tensors[f"{name}.{number + 1}"] = training.state()
        tensors[f"{name}.loss"] = torch.tensor(training.losses)
        tensors[f"{name}.grad_norm"] = torch.tensor(training.norms)
        clipped += [norm > CLIP for norm in training.norms]
    print(f"clipped {sum(clipped)} of {len(clipped)} steps")
    assert any(clipped) and not all(clipped), "some steps must clip and some must not"


def warm(tensors):
    """Twenty steps, then everything is rounded to float32, then the compared steps."""
    for optimizer in ("adamw", "adam"):
        training = Training(optimizer)
        for number in range(20):
            training.step(100 + number)
        with torch.no_grad():
            exact = [*training.network.parameters(), *statistics(training.network), *training.moments("exp_avg"),
                     *training.moments("exp_avg_sq"), *training.averages.module.parameters(),
                     *statistics(training.averages.module)]
            for tensor in exact:
                tensor.copy_(tensor.float().double())
        tensors[f"{optimizer}.warm.0"] = training.state("exp_avg", "exp_avg_sq")
        for number in range(STEPS):
            training.step(number)
            if number + 1 in (1, STEPS):
                tensors[f"{optimizer}.warm.{number + 1}"] = training.state("exp_avg", "exp_avg_sq")


OVERFLOWS = {2: ("conv1.weight", float("inf")), 3: ("fc.bias", float("nan")), 9: ("bn2.weight", float("-inf"))}


def scaled(tensors):
    for optimizer, moments in (("adamw", ("exp_avg", "exp_avg_sq")), ("momentum", ("momentum_buffer",))):
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)
        training = Training(optimizer, scaler=scaler)
        rows, scales = [], []
        for number in range(14):
            training.step(number, OVERFLOWS.get(number))
            rows.append(training.state(*moments))
            scales.append(torch.tensor([scaler.get_scale(), scaler._get_growth_tracker(), training.updates]))
        tensors[f"{optimizer}.scaled"] = torch.stack(rows)
        tensors[f"{optimizer}.scaled.scale"] = torch.stack(scales)


def half(tensors):
    """float16 autocast with gradients that overflow by themselves: the scale after each step."""
    def run(nudge):
        fc1, fc2 = nn.Linear(12, 16, dtype=torch.float32), nn.Linear(16, 3, dtype=torch.float32)
        with torch.no_grad():
            for name, layer in (("fc1", fc1), ("fc2", fc2)):
                for key, tensor in layer.named_parameters():
                    tensor.copy_(draws.weight(f"{name}.{key}", tuple(tensor.shape)) * nudge)
        optimizer = torch.optim.SGD([*fc1.parameters(), *fc2.parameters()], lr=0.05, momentum=0.9, weight_decay=0, **plain)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=4)
        rows = []
        for number in range(24):
            x = draws.uniform(f"row {number}", (BATCH, 12), -2, 2).float()
            y = draws.below(f"y {number}", (BATCH,), 3)
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = F.cross_entropy(fc2(torch.tanh(fc1(x))), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            rows.append([scaler.get_scale(), scaler._get_growth_tracker()])
        return torch.tensor(rows), torch.cat([p.detach().flatten() for p in (*fc1.parameters(), *fc2.parameters())])
    scales, weights = run(1)
    for nudge in (0.98, 1.02):
        assert run(nudge)[0].equal(scales), "an overflow is too close to the limit: change the scale"
    falls = (scales[1:, 0] < scales[:-1, 0]).sum().item()
    rises = (scales[1:, 0] > scales[:-1, 0]).sum().item()
    print(f"float16: the scale falls {falls + (scales[0, 0] < 2**24).item()} times and rises {rises} times")
    assert falls > 2 and rises > 0
    tensors |= {"half.scale": scales, "half.weights": weights}


if __name__ == "__main__":
    tensors = {}
    for part in (runs, warm, scaled, half):
        part(tensors)
    golden_file.write("steps.safetensors", "make_steps.py", tensors)
