# SPDX-License-Identifier: Apache-2.0
"""Run folders for tests and benchmarks of the report, written from docs/formats.md and not by Stoker.

    report_runs.py KIND FOLDER [STEPS]     KIND: image, text, crashed, running, first_step, nothing, ugly, long
"""
import json
import math
import os
import pathlib
import random
import struct
import sys
import time
import zlib

COLUMNS = "kind,epoch,step,samples,seconds,data_wait,lr,memory_bytes,split,metric,value"
CLASSES = ["ankle boot", "bag", "coat", "dress", "pullover", "sandal", "shirt", "sneaker", "t-shirt", "trouser"]


def png(width, height, pixel):
    """A greyscale PNG; pixel(x, y) gives 0 to 255."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes(int(pixel(x, y)) & 255 for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Run:
    """Writes one run folder step by step."""

    def __init__(self, folder, steps=600, title="cnn at 28 pixels, 10 classes, cpu, bf16", scalars=("loss", "skipped"), **plan):
        self.folder = pathlib.Path(folder)
        (self.folder / "artifacts").mkdir(parents=True, exist_ok=True)
        self.steps, self.scalars = steps, list(scalars)
        self.csv, self.events = [COLUMNS + "".join("," + name for name in scalars)], []
        values = {"model": ("cnn", "default", "small images"), "epochs": ("12", "default", ""), "batch": ("32", "default", "at least 100 steps per epoch"),
                  "lr": ("0.2", "default", "found on CIFAR-10"), "precision": ("bf16", "measured", "4.1 ms per step, fp32 6.3 ms"),
                  "threads": ("2", "measured", "fastest of 1 and 2"), "seed": ("1", "default", ""), "label_smoothing": ("0", "default", "")}
        values.update({key: (str(value), "command line", "") for key, value in plan.items()})
        rows = {key: dict(zip(("value", "origin", "reason"), row)) for key, row in values.items()}
        self.write("plan.json", json.dumps({"format": 1, "plan": rows}, indent=2))
        self.write("config.toml", "# The options of this run; `stoker train --config config.toml` uses them again.\ndata = 'fashion'\n")
        self.event("run_started", title=title, scalars=self.scalars, epochs=4, steps_per_epoch=steps // 4, first_step=0, last_step=steps)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def event(self, event, /, **fields):
        self.events.append(json.dumps({"event": event, **fields}, ensure_ascii=False))

    def step(self, step, *scalars, seconds=0.02, wait=0.001, lr=None, memory=170 << 20):
        lr = 0.1 * (1 + math.cos(math.pi * step / self.steps)) if lr is None else lr
        self.csv.append(f"step,{4 * (step - 1) // self.steps},{step},32,{seconds},{wait},{lr},{memory},,," + "".join(f",{each}" for each in scalars))

    def monitor(self, step, seconds, figures):
        """A record of the machine; seconds: since the run began."""
        self.event("monitor", version=1, time=1795757000 + seconds, step=step, seconds=1.0, figures=figures)

    def evaluated(self, step, split, best=False, **metrics):
        for name, value in metrics.items():
            quoted = '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"') else name
            self.csv.append(f"eval,{4 * step // self.steps},{step},,0.14,,,,{split},{quoted},{value}" + "," * len(self.scalars))
        self.event("evaluated", epoch=0, step=step, split=split, seconds=0.14, best=best, metrics=metrics)

    def checkpoint(self, name, step, task="image_classification", metric="accuracy", value=0.88):
        self.write(f"checkpoints/{name}/info.json", json.dumps({"format": 1, "task": task, "step": step, "metric": {"name": metric, "value": value}}))

    def artifact(self, name, **thing):
        self.write(f"artifacts/{name}.json", json.dumps(thing, ensure_ascii=False))

    def machine(self, **more):
        self.write("machine.json", json.dumps({"stoker": "0.1.0", "torch": "2.11.0", "device": "cpu", "cpu": "AMD EPYC (virtual)", "cores": 2,
                                               "memory_bytes": 25769803776, "kernel": "6.1.0", **more}))

    def close(self, end=None, text="", half_a_line=False, age=0):
        if end:
            self.event("run_finished", step=self.last(), outcome=end, text=text, seconds=0.021 * self.last())
        self.write("metrics.csv", "\n".join(self.csv) + ("\nstep,3,45" if half_a_line else "\n"))
        self.write("metrics.jsonl", "\n".join(self.events) + ('\n{"event":"st' if half_a_line else "\n"))
        for path in self.folder.iterdir():
            os.utime(path, (time.time() - age, time.time() - age))
        return self.folder

    def last(self):
        return max([0] + [int(line.split(",")[2]) for line in self.csv[1:] if line.startswith("step")])


def train(run, last, seed=1, speed=1.0, level=0.25, metric="accuracy", every=None, nan_at=(), skipped=()):
    """Steps with a loss that falls, and an evaluation now and then."""
    draw = random.Random(seed)
    every, best = every or max(1, run.steps // 12), -1e9
    for step in range(1, last + 1):
        loss = level + 2.1 * math.exp(-4 * speed * step / run.steps) + draw.gauss(0, 0.08)
        spike = 6 if step == run.steps // 3 else 0
        extra = [round(abs(draw.gauss(1.2, 0.3)) + spike, 5)] if "grad_norm" in run.scalars else []
        value = "nan" if step in nan_at else round(max(0.02, loss) + spike / 4, 6)
        run.step(step, value, *extra, 1 if step in skipped else 0, seconds=round(0.02 + abs(draw.gauss(0, 0.004)), 6),
                 wait=round(abs(draw.gauss(0.0008, 0.001)), 6), memory=int((170 + 30 * min(1, step / 40)) * (1 << 20)))
        if step in skipped:
            run.event("fault", step=step, kind="non_finite", text="skipped: the loss or gradients are not finite (1 in a row)")
        if step % every == 0:
            shown = level + 0.1 + 2.0 * math.exp(-3.6 * speed * step / run.steps)
            score = 0.93 - 0.5 * math.exp(-4 * speed * step / run.steps) - level / 5 + draw.gauss(0, 0.004)
            metrics = ({"accuracy": round(score, 4), "top5": round(min(1, score + 0.1), 4), "loss": round(shown, 5), "macro_f1": round(score - 0.01, 5)}
                       if metric == "accuracy" else {"loss": round(shown, 5), "perplexity": round(math.exp(shown), 4)})
            now = score if metric == "accuracy" else -shown
            run.evaluated(step, "val", best=now > best, **metrics)
            best = max(best, now)


def machine_beside(run, seconds=180, gpu=True):
    draw = random.Random(11)
    for second in range(1, seconds + 1):
        busy = 1.9 if second % 45 > 6 else 0.7
        figures = {"process.cpu_cores": busy + draw.gauss(0, 0.04), "machine.busy_cores": busy + 0.1 + abs(draw.gauss(0, 0.1)),
                   "process.resident_bytes": (900 + 300 * min(1, second / 30)) * 2 ** 20, "device.allocated_bytes": (170 + draw.random()) * 2 ** 20,
                   "process.asked_bytes_per_second": 60e6 * busy, "process.read_bytes_per_second": 60e6 * busy if second < 45 else 0,
                   "threads.main.cpu_cores": busy / 2, "threads.loader.cpu_cores": busy / 3, "threads.unnamed.cpu_cores": busy / 6,
                   "threads.main.waiting_cores": abs(draw.gauss(0.05, 0.05)), "machine.cpu_pressure_share": abs(draw.gauss(0.1, 0.1))}
        if gpu:
            figures.update({"gpu0.busy_share": min(1, busy / 2 + 0.04), "gpu0.sm_busy_share": busy / 2.6, "gpu0.tensor_busy_share": busy / 5,
                            "gpu0.power_watts": 250 + 150 * busy, "gpu0.power_limit_watts": 700, "gpu0.sm_clock_hz": 1.98e9 - 2e8 * (second % 45 > 40),
                            "gpu0.sm_clock_limit_hz": 1.98e9, "gpu0.temperature_celsius": 50 + 10 * busy, "gpu0.memory_used_bytes": 30 * 2 ** 30,
                            "gpu0.memory_bytes": 80 * 2 ** 30, "gpu0.throttled_share": 1.0 * (second % 45 > 40)})
        if second % 60 == 0:
            run.event("checkpoint", step=run.steps * second // seconds, kind="last")
        run.monitor(run.steps * second // seconds, second, figures)


def images(run, count=24, size=28):
    draw, items = random.Random(5), []
    for i in range(count):
        cx, cy, r = draw.uniform(9, 19), draw.uniform(9, 19), draw.uniform(5, 10)
        run.write(f"artifacts/mistake-{i}.png", png(size, size, lambda x, y: max(0, 235 - 12 * abs(math.hypot(x - cx, y - cy) - r) ** 1.5)))
        right, said = draw.sample(CLASSES, 2)
        items.append({"image": f"mistake-{i}.png", "caption": f"{said} {draw.randint(71, 99)} %\nis {right}", "good": False})
    run.artifact("mistakes", kind="gallery", title="Most confident mistakes", items=items)
    run.artifact("examples", kind="gallery", title="Validation images", items=[{**each, "good": i % 7 != 3} for i, each in enumerate(items[:12])])


def anatomy(run, steps, hostile="", seed=11):
    """Records of the time of steps: ten periods and the whole, and slow steps."""
    draw = random.Random(seed)
    shares = {"fetch": 0.08, "forward": 0.3, "loss": 0.02, "backward": 0.4, "unscale and clip": 0.02, "optimizer": 0.06, "EMA": 0.01,
              "logging": 0.01, "device wait": 0.01, "checkpoint": 0.02, "evaluation": 0.06, "other": 0.01, **({hostile: 0.01} if hostile else {})}
    sums = dict.fromkeys(shares, 0.0)
    for part in range(1, 11):
        spent = {name: share * 2 * (0.8 + 0.4 * draw.random()) * (4 if part == 6 and name == "fetch" else 1) for name, share in shares.items()}
        for name, seconds in spent.items():
            sums[name] += seconds
        run.event("anatomy", version=1, time=1.7e9 + 2 * part, step=part * steps // 10, steps=steps // 10, seconds=sum(spent.values()), p50=0.02, p90=0.03,
                  p99=0.05, slowest=0.4, marks=[{"name": hostile or "attention", "seconds": spent["forward"] / 2}],
                  phases=[{"name": name, "seconds": seconds, "cpu_seconds": seconds * (0.1 if name == "fetch" else 0.9)} for name, seconds in spent.items()])
    run.event("slow_step", version=1, time=1.7e9, step=6 * steps // 10, seconds=1.25, usual_seconds=0.02, phase="fetch",
              cause=hostile or "slow sample cats/a picture.jpg: 1.2 s", figures={"minor_faults": 3})
    run.event("slow_step", version=1, time=1.7e9, step=steps // 2, seconds=0.4, usual_seconds=0.02, phase="evaluation", cause="evaluation", figures={})
    run.event("anatomy", version=1, time=1.7e9, step=steps, whole=True, steps=steps, seconds=sum(sums.values()), p50=0.02, p90=0.03, p99=0.05, slowest=0.4,
              marks=[], phases=[{"name": name, "seconds": seconds, "p50": 0.03 * shares[name], "p99": 0.09 * shares[name]} for name, seconds in sums.items()])


def ranks(run, steps, host="node2"):
    """Two periods and the whole of three ranks, the last of which waits for data."""
    rows = [{"host": "node1", "computed": 2.0, "data": 0.1, "delayed": 0.05, "saving": 0.5, "waited": 1.5},
            {"host": "node1", "computed": 2.1, "waited": 2.0}, {"host": host, "computed": 2.0, "data": 2.1, "delayed": 0.0, "saving": 0.0, "waited": 0.05}]
    for part in (1, 2):
        run.event("ranks", version=1, time=1.7e9 + part, step=part * steps // 2, steps=steps // 2, seconds=4.5, exposed=0.45, ranks=rows, buckets=[])
    run.event("ranks", version=1, time=1.7e9 + 2, step=steps, whole=True, steps=steps, seconds=9.0, exposed=0.9, ranks=rows,
              buckets=[{"bytes": 4_000_000, "seconds": 1.2, "steps": steps}, {"bytes": 64, "seconds": 0.0, "steps": 0}])


def confusion(run, classes, seed=3):
    draw = random.Random(seed)
    values = [[draw.randint(80, 99) if a == b else (draw.randint(0, 9) if draw.random() < 12 / len(classes) ** 1.3 else 0)
               for b in range(len(classes))] for a in range(len(classes))]
    run.artifact("confusion", kind="matrix", title="Confusion on the test split", labels=classes, values=values)
    rows = [[name, sum(values[i]), round(values[i][i] / sum(values[i]), 4), round(values[i][i] / max(1, sum(row[i] for row in values)), 4)]
            for i, name in enumerate(classes)]
    run.artifact("classes", kind="table", title="Per class", columns=["class", "samples", "recall", "precision"], rows=rows, note="on the test split")


def image(folder, steps=600, classes=None, seed=1, speed=1.0, **plan):
    run = Run(folder, steps, **plan)
    train(run, steps, seed, speed)
    run.evaluated(steps, "test", accuracy=0.892, top5=0.998, loss=0.38, macro_f1=0.8917)
    run.event("finding", text="validation: 500 of the 5000 training samples, balanced by class, seed 1")
    run.event("finding", text="9 of the 1000 images of test are also in train, byte for byte: its metrics are too good")
    for name in ("best", "last"):
        run.checkpoint(name, steps)
    machine_beside(run)
    run.machine(resumed_at=[steps // 2])
    images(run)
    confusion(run, classes or CLASSES)
    anatomy(run, steps)
    ranks(run, steps)
    return run.close("done")


def text(folder, steps=500):
    run = Run(folder, steps, "gpt: 4 layers, 4 heads, width 128, context 64, cpu", ("loss", "grad_norm", "skipped"), model="gpt", batch=12)
    train(run, steps, 2, level=1.5, metric="loss")
    for step in (250, 500):
        run.artifact(f"sample-{step:06}", kind="text", title=f"Samples at step {step}", step=step,
                     text="ROMEO:\nWhat, <b>ho</b>! the night is yet & young,\n  And thou, fair cousin, wilt thou not be moved?\n\nJULIET:\nÔ sweet 夜, be still.\n" * step)
    for name in ("best", "last"):
        run.checkpoint(name, steps, "language_model", "loss", 1.61)
    run.machine()
    return run.close("done")


def crashed(folder, steps=600):
    run = Run(folder, steps, lr=50)
    train(run, 130, 3, nan_at=(90, 91, 120), skipped=(90, 91, 120))
    run.checkpoint("last", 100)
    return run.close("failed", "[train.loop] 3 steps in a row were not finite: lower lr (it is 50) or set precision=fp32")


def running(folder, steps=600):
    run = Run(folder, steps, val=0)
    train(run, 277, 4, every=10 ** 9)
    run.checkpoint("last", 250)
    return run.close(half_a_line=True, age=2)


def first_step(folder, steps=600):
    run = Run(folder, steps)
    run.step(1, 2.31, 0)
    return run.close("failed", "[device] out of memory")


def nothing(folder, steps=600):
    return Run(folder, steps).close(age=86400)


def ugly(folder, steps=60):
    """Names that an attacker would choose."""
    hostile = "</script><img src=x onerror=\"window.pwned=1\">"
    run = Run(folder, steps, title=hostile, scalars=("loss", "train/größe 損失", hostile.replace(",", "")), lr=hostile)
    for step in range(1, steps + 1):
        run.step(step, 1 / step, step, "inf" if step == 30 else 0.5)
        if step % 20 == 0:
            run.evaluated(step, "val", best=True, **{"acc/top,1": step / 100, "genauigkeit für „é“": 0.5, hostile: 0.25})
    run.event("finding", text=hostile)
    anatomy(run, steps, hostile)
    ranks(run, steps, hostile)
    run.artifact("hostile", kind="table", title=hostile, columns=["class", hostile], rows=[[hostile, 0.5], ["\u2028\u0007", None]])
    run.artifact("confusion", kind="matrix", title=hostile, labels=[hostile, "b"], values=[[3, 1], [0, 4]])
    run.artifact("text", kind="text", title=hostile, step=1, text=hostile)
    run.artifact("outside", kind="gallery", title="outside", items=[{"image": "../plan.json", "caption": hostile}, {"image": "/etc/passwd"}])
    run.write("artifacts/bytes.json", b'{"kind":"table","title":"\xff\xfe bytes","columns":["a\xc3"],"rows":[["\xf0\x9f"]]}')
    run.write("artifacts/half.json", '{"kind":"table","titl')
    return run.close("done")


def long(folder, steps=1_000_000):
    run = Run(folder, steps, scalars=("loss", "grad_norm", "skipped"))
    train(run, steps, 7, every=max(1, steps // 400))
    run.csv = [line for line in run.csv]
    for name in ("best", "last"):
        run.checkpoint(name, steps)
    run.machine()
    images(run)
    confusion(run, [f"class {i:03}" for i in range(200)])
    step_lines = '\n'.join(f'{{"event":"step","epoch":0,"step":{i},"samples":32,"seconds":0.02,"data_wait":0.001,"lr":0.1,'
                           f'"memory_bytes":178257920,"scalars":{{"loss":1.25,"grad_norm":1.5,"skipped":0}}}}' for i in range(1, steps + 1))
    run.events.insert(1, step_lines)
    return run.close("done")


if __name__ == "__main__":
    extra = [int(each) for each in sys.argv[3:]]
    print(globals()[sys.argv[1]](sys.argv[2], *extra))
