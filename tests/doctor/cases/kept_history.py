# SPDX-License-Identifier: Apache-2.0
"""Sick: adding up losses keeps every graph. Cured: detached. Healthy: a list of the last losses, without graphs."""

import parts

if __name__ == "__main__":
    model = parts.make_model()
    loader, optimizer = parts.make_loader(parts.Samples()), parts.make_optimizer(model)
    total, last = 0, []
    for inputs, targets in parts.batches(loader):
        optimizer.zero_grad()
        loss = parts.make_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss if parts.SICK else loss.detach()
        if parts.HEALTHY:
            last.append(loss.detach())
    print(f"loss {total.item() / parts.STEPS:.6f}")
