#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants errors in a copy of the sources, one by one, and checks that a golden test fails for each.

    tests/golden/plant_errors.py [--only WORD]... [--list]     the copy and its build: build/planted/
A golden that misses an error is worth nothing. Rebuilds only the changed file and two test binaries, runs fast tests first and
stops at the first failure. Exits with 1 if an error was not caught, or if the code to change does not exist any more (then fix
PLANTS below). Run by `make test-long`.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HOUSE = pathlib.Path(__file__).resolve().parents[2]
COPY = HOUSE / "build" / "planted"
BUILD = COPY / "build" / "release"
BINARIES = ("golden_tests", "models_tests")
SUITES = (("golden_tests", "GoldenLosses.*"), ("golden_tests", "GoldenNetworks.Gpt"),
          ("models_tests", "Encoder.EqualsTransformersBert:Unet.EqualsAPlainOneInPyTorch"), ("golden_tests", "GoldenScaler.*"),
          ("golden_tests", "GoldenSteps.*"), ("golden_tests", "GoldenNetworks.Resnet*"), ("golden_tests", "GoldenAutocast.*"))
SOURCE = "src/stoker/"
# (error, file, (code that occurs once, its replacement), ...)
PLANTS = [
    ("batch norm: eps doubled", "models/layers.cpp", ("by_batch, momentum, kEps", "by_batch, momentum, 2 * kEps")),
    ("batch norm: statistics not updated", "models/layers.cpp", ("by_batch, momentum, kEps", "by_batch, 0, kEps")),
    ("batch norm: mean and variance swapped", "models/layers.cpp",
     ("at::batch_norm(x, weight, bias, running_mean, running_var,", "at::batch_norm(x, weight, bias, running_var, running_mean,")),
    ("layer norm: eps doubled", "models/layers.cpp", ("weight, bias, eps)", "weight, bias, 2 * eps)")),
    ("adamw: eps ten times too large", "optim/fused.cpp",
     ("group.weight_decay,\n                      o.eps,", "group.weight_decay,\n                      10 * o.eps,")),
    ("adam: eps ten times too large", "optim/fused.cpp",
     ("group.weight_decay, o.eps,\n", "group.weight_decay, 10 * o.eps,\n")),
    ("adam: bias correction missing", "optim/fused.cpp",  # late steps need no correction
     ("core::host_value(step_counters_[i]) + 1);", "core::host_value(step_counters_[i]) + 1e6);")),
    ("adamw: betas swapped", "optim/fused.cpp",
     ("o.beta1, o.beta2, group.weight_decay,\n                      o.eps",
      "o.beta2, o.beta1, group.weight_decay,\n                      o.eps")),
    ("adamw: decay in the gradient", "optim/fused.cpp", ("at::_fused_adamw_(", "at::_fused_adam_(")),
    ("sgd: nesterov ignored", "optim/fused.cpp", ("o.nesterov,", "false,")),
    ("sgd: momentum dampened", "optim/fused.cpp", ("/*dampening=*/0,", "/*dampening=*/0.1,")),
    ("weight decay on norms and biases", "optim/fused.cpp",
     ("decays ? options_.weight_decay : 0", "decays || true ? options_.weight_decay : 0")),
    ("schedule: body one step early", "optim/schedule.cpp", ("at - o.warmup_steps;", "at - o.warmup_steps + 1;")),
    ("schedule: one cycle's top one step late", "optim/schedule.cpp", ("top = rise - 1,", "top = rise,")),
    ("clipping: eps left out", "core/step_work.h", ("kNormEps = 1e-6", "kNormEps = 0")),
    ("clipping: small norms raised to the limit", "core/step_work.h",
     ("return divisor <= 1 ? 1 : divisor;", "return divisor;")),
    ("clipping: left out", "train/step.cpp", ("found_inf(), divisor);", "found_inf(), {});")),
    ("clipping: norm of the scaled gradients", "core/step_work.h", ("round(norm / scale)", "round(norm)")),
    ("clipping: sum of magnitudes as norm", "optim/clip.cpp",
     ("at::_foreach_norm(group, 2,", "at::_foreach_norm(group, 1,"),
     ("squares += sum_of_squares(grad);", "squares += std::pow(grad.abs().sum().item<double>(), 2);")),
    ("averages: decay off", "core/step_work.h", ("1 - work.decay)", "1.1 * (1 - work.decay))")),
    ("averages: warm-up off", "core/step_work.h", ("std::max(9 /", "std::max(8 /")),
    ("averages: updated by a skipped step", "core/step_work.h",
     ("*work.weight = skipped ? 0 : std", "*work.weight = std")),
    ("loss: weights of the terms ignored", "core/step_work.h", ("? weight / normaliser :", "? (0 * weight + 1) / normaliser :")),
    ("loss: backward is not scaled", "core/loss_terms.cpp", ("host_tensor(term.gradient,", "host_tensor(term.gradient / times,")),
    ("loss: mean instead of sum", "ops/cross_entropy.cpp", ("at::Reduction::Sum", "at::Reduction::Mean")),
    ("loss: label smoothing halved", "ops/cross_entropy.cpp",
     ("kNoIgnoredClass, label_smoothing", "kNoIgnoredClass, label_smoothing / 2")),
    ("loss: class weights not in the normaliser", "ops/cross_entropy.cpp", (".index_select(0, target).sum()", ".sum()")),
    ("mixed loss: shares of the wrong row", "ops/cross_entropy.cpp", ("at::lerp(other, own,", "at::lerp(own, other,")),
    ("chunked loss: ignored targets count", "ops/linear_cross_entropy.cpp", ("target.ge(0)", "target.ge(-100)")),
    ("chunked loss: gradient of the last piece only", "ops/linear_cross_entropy.cpp",
     ("sum.defined() && !wider", "sum.defined() && wider && !wider"), ("} else if (sum.defined()) {", "} else if (false) {")),
    ("accumulation: each microbatch by its own mean", "train/step.cpp",
     ("forward_backward(batch.slice(first, end), number, normalisers);",
      "const core::Batch piece = batch.slice(first, end);\n"
      "forward_backward(piece, number, parts_.model.normalisers(piece) * passes);")),
    ("accumulation: sizes not balanced", "train/step.cpp",
     ("first = pass * size / passes, end = (pass + 1) * size / passes;",
      "first = pass * ((size - 1) / passes + 1), end = std::min((pass + 1) * ((size - 1) / passes + 1), size);")),
    ("skipped step: optimizer steps", "train/step.cpp",
     ("step(parts_.scaler.found_inf(), divisor)", "step({}, divisor)")),
    ("skipped step: statistics stay", "train/step.cpp",
     ("  keep_norm_buffers_if_skipped();  // before", "  // before")),
    ("scaler: does not back off", "precision/grad_scaler.cpp",
     ("options_.growth_factor, options_.backoff_factor,\n", "options_.growth_factor, 1.0,\n")),
    ("scaler: grows a step late", "precision/grad_scaler.cpp",
     ("options_.growth_interval);", "options_.growth_interval + 1);")),
    ("scaler: gradients stay scaled", "core/step_work.h",
     ("clip_divisor(true_norm, work.clip) : 1) * scale);", "clip_divisor(true_norm, work.clip) : 1));")),
    ("autocast: never on", "precision/autocast.cpp", ("set_autocast_enabled(device, enabled)", "set_autocast_enabled(device, enabled && false)")),
    ("autocast: bfloat16 for every setting", "precision/autocast.cpp",
     ("set_autocast_dtype(device, dtype)", "set_autocast_dtype(device, at::kBFloat16)")),
    ("gpt: exact GELU", "models/gpt.cpp", ('"tanh"', '"none"')),
    ("gpt: sees later tokens", "models/gpt.cpp", (".causal = true", ".causal = false")),
    ("gpt: queries and keys swapped", "models/gpt.cpp",
     ("by_head(parts[0]), by_head(parts[1])", "by_head(parts[1]), by_head(parts[0])")),
    ("gpt: norm after the block", "models/gpt.cpp", ("x + attention(ln_1(x))", "ln_1(x + attention(x))")),
    ("gpt: attention without its scale", "ops/attention.cpp", (" / std::sqrt(static_cast<double>(query.size(-1)))", "")),
    ("bert: GELU by tanh", "models/encoder.cpp", ("at::gelu(take_last(values))", 'at::gelu(take_last(values), "tanh")')),
    ("bert: eps of PyTorch's layer norm", "models/encoder.cpp", ("1e-12", "1e-5")),
    ("unet: corners aligned", "models/unet.cpp", ("/*align_corners=*/false", "/*align_corners=*/true")),
    ("resnet: ReLU before the addition", "models/resnet.cpp",
     ("return conv2(conv1(x).relu_()).add_(shortcut(x)).relu_();",
      "return conv2(conv1(x).relu_()).relu_().add_(shortcut(x));")),
    ("resnet50: stride in the 1x1 convolution", "models/resnet.cpp",
     (".out = shape.width, .kernel = 1, .padding = 0,",
      ".out = shape.width, .kernel = 1, .stride = shape.stride, .padding = 0,"),
     (".in = shape.width, .out = shape.width, .stride = shape.stride,", ".in = shape.width, .out = shape.width,")),
    ("resnet34: made as a bottleneck", "models/resnet.cpp",
     ("return make_resnet(options); }", "return make_resnet(options, {.bottleneck = true}); }")),
    ("resnet: another name for the shortcut", "models/resnet.cpp", ('".downsample.0"', '".shortcut.0"')),
]


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


def make_copy():
    """Copies exactly the files that git knows or would add. Writes only changed ones, so that ninja rebuilds little."""
    listed = run("git", "-C", HOUSE, "ls-files", "-z", "-co", "--exclude-standard").stdout.split("\0")
    names = {name for name in listed if name and (HOUSE / name).is_file()}
    for left in COPY.rglob("*"):
        if left.is_file() and COPY / "build" not in left.parents and str(left.relative_to(COPY)) not in names:
            left.unlink()  # CMake would find it and build it
    for name in names:
        source, target = HOUSE / name, COPY / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    done = run("cmake", "--preset", "release", cwd=COPY)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def build():
    done = run("ninja", "-C", BUILD, *JOBS, *BINARIES)
    return "" if done.returncode == 0 else done.stdout[-3000:]


def first_failure():
    """The first test that fails, or None."""
    variables = os.environ | {"STOKER_SOURCE": str(HOUSE)}
    for binary, suite in SUITES:
        done = run(BUILD / "tests" / binary, f"--gtest_filter={suite}", "--gtest_fail_fast", env=variables)
        if done.returncode != 0:
            failed = re.search(r"\[  FAILED  \] (\S+)", done.stdout)
            return failed.group(1) if failed else f"{suite}: exit code {done.returncode}"
    return None


def planted(name, changes):
    """The file's text with the error."""
    text = (HOUSE / SOURCE / name).read_text()
    for there, wrong in changes:
        if text.count(there) != 1:
            sys.exit(f"plant_errors: {there!r} occurs {text.count(there)} times in {SOURCE}{name}; fix PLANTS")
        text = text.replace(there, wrong)
    return text


def main():
    global JOBS
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="only errors with WORD in the name")
    parser.add_argument("--list", action="store_true", help="print the errors and check that each can be planted")
    parser.add_argument("--jobs", help="jobs of ninja")
    arguments = parser.parse_args()
    JOBS = ["-j", arguments.jobs] if arguments.jobs else []
    chosen = [p for p in PLANTS if not arguments.only or any(word in p[0] for word in arguments.only)]
    texts = [planted(name, changes) for _, name, *changes in chosen]
    if arguments.list:
        print("\n".join(what for what, *_ in chosen))
        return
    make_copy()
    if failure := build():
        sys.exit(failure)
    if failed := first_failure():
        sys.exit(f"plant_errors: {failed} fails without a planted error")
    missed = []
    for (what, name, *_), text in zip(chosen, texts):
        start = time.monotonic()
        file = COPY / SOURCE / name
        file.write_text(text)
        failure = build()
        failed = None if failure else first_failure()
        shutil.copyfile(HOUSE / SOURCE / name, file)
        verdict = f"does not compile: {failure}" if failure else failed or "NOT CAUGHT"
        print(f"{what:48} {verdict:58} {time.monotonic() - start:4.0f} s", flush=True)
        if not failed:
            missed.append(what)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} planted errors made a golden test fail")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
