// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/plan_options.h"

#include <algorithm>
#include <limits>

#include "stoker/memory/microbatch.h"
#include "stoker/memory/recompute_choice.h"
#include "stoker/optim/schedule.h"
#include "stoker/train/log_targets.h"
#include "stoker/train/pipeline_plan.h"
#include "stoker/train/profile_steps.h"

namespace stoker::train {
namespace {

using core::always;
using core::Bytes;
using core::Choice;
using core::depends;
using core::Duration;
using core::File;
using core::Flag;
using core::Real;
using core::Text;
using core::Whole;
using Rows = std::vector<core::OptionRow<Plan>>;

constexpr auto B = core::OptionGroup::kBehaviour;
constexpr auto P = core::OptionGroup::kPerformance;
constexpr std::int64_t kMany = 1'000'000'000;  // steps: more than any run has
constexpr double kYear = 3600.0 * 24 * 365;    // seconds

bool non_empty(std::string_view text) { return !text.empty(); }

bool valid_device(std::string_view text) {
  if (text == "cpu" || text == "cuda" || text == "cuda:all") {
    return true;
  }
  if (!text.starts_with("cuda:") || text.size() < 6 || text.size() > 7) {
    return false;
  }
  return std::ranges::all_of(text.substr(5), [](char c) { return c >= '0' && c <= '9'; });
}

// A row per option: field, key, group, type, default with its reason, help, names in other tools.
// clang-format off
Rows run_options() {
  return {
      {&Plan::task, {"task", B, Text{"a name that `stoker info tasks` lists", non_empty},
                     depends("inferred from the data"), "the kind of task"}},
      {&Plan::model, {"model", B, Text{"a name that `stoker info models` lists", non_empty},
                      depends("set by the recipe"), "the network", {"arch", "network"}}},
      {&Plan::weights, {"weights", B, File{"a .safetensors file, a checkpoint or a run folder"},
                        always("", "from scratch"),
                        "pretrained weights; the head starts from scratch if the number of classes differs",
                        {"pretrained", "checkpoint"}}},
      {&Plan::freeze, {"freeze", B, Whole{0, 1000}, always("0", "every group is trained"),
                       "number of layer groups to freeze, counted from the input (stem, layer1, ...)"}},
      {&Plan::freeze_norm, {"freeze_norm", B, Flag{}, always("off", "batch norm learns the statistics of the data"),
                            "with weights=: batch norm trains with the running statistics of the weights and keeps "
                            "them, so that small passes train as the whole batch does", {"freeze_bn", "norm_eval"}}},
      {&Plan::sync_bn, {"sync_bn", B, Flag{}, always("off", "each rank's samples have their own statistics"),
                        "with several ranks: batch norm takes its statistics from the samples that all of them have in a "
                        "pass, for two messages per norm and pass",
                        {"sync_batchnorm", "sync_batch_norm", "use_sync_bn"}}},
      {&Plan::epochs, {"epochs", B, Whole{1, 1'000'000}, depends("set by the recipe"), "passes over the training split",
                       {"num_epochs", "max_epochs"}}},
      {&Plan::steps, {"steps", B, Whole{0, kMany}, always("0", "epochs= decides"), "optimizer steps; overrides epochs",
                      {"max_steps", "iterations"}}},
      {&Plan::time, {"time", B, Duration{kYear}, always("0", "no limit"),
                     "time limit; without epochs= or steps= it also sets the number of epochs and may widen the "
                     "default network",
                     {"max_time"}}},
      {&Plan::batch, {"batch", B, Whole{1, 1 << 20}, depends("set by the recipe and the number of samples"),
                      "samples per optimizer step; auto: the fastest that fits into memory in one pass, found by a search "
                      "before training; the learning rate follows by lr_scale",
                      {"batch_size", "bs"}}},
      {&Plan::seed, {"seed", B, Whole{0, std::numeric_limits<std::int64_t>::max()},
                     always("1", "fixed, so that runs are reproducible"),
                     "seed of initial weights, sample order and augmentation"}},
      {&Plan::val, {"val", B, Real{0, 0.9}, always("0.1", "used if the data has no validation split"),
                    "fraction of the training split to hold out for validation", {"val_split", "validation_split"}}},
      {&Plan::tail, {"tail", B, Choice{{"keep", "drop"}}, always("keep", "every sample once per epoch"),
                     "whether to keep or drop the incomplete last batch of an epoch", {"drop_last"}}},
  };
}

Rows optimizer_options() {
  return {
      {&Plan::lr, {"lr", B, Real{1e-12, 1e4}, depends("set by the recipe"),
                   "peak learning rate at batch size lr_batch; rescaled for other sizes, see lr_scale",
                   {"learning_rate", "base_lr", "max_lr"}}},
      {&Plan::lr_scale, {"lr_scale", B, Choice{{"linear", "sqrt", "none"}},
                         depends("linear for sgd, sqrt for adam and adamw"), "how lr scales with batch / lr_batch"}},
      {&Plan::lr_batch, {"lr_batch", B, Whole{1, 1 << 20}, depends("set by the recipe"),
                         "the batch size for which lr is given"}},
      {&Plan::optimizer, {"optimizer", B, Choice{{"sgd", "adam", "adamw"}}, depends("set by the recipe"),
                          "the optimizer; all have a fused update", {"opt", "optim"}}},
      {&Plan::momentum, {"optimizer.momentum", B, Real{0, 0.9999}, always("0.9", "usual for sgd"),
                         "sgd: momentum; 0: plain sgd", {"momentum"}}},
      {&Plan::nesterov, {"optimizer.nesterov", B, Flag{}, always("on", "costs nothing, converges faster"),
                         "sgd: Nesterov momentum", {"nesterov"}}},
      {&Plan::beta1, {"optimizer.beta1", B, Real{0, 0.999999}, always("0.9", "Kingma and Ba, 2015"),
                      "adam, adamw: decay of the first moment", {"beta1", "betas"}}},
      {&Plan::beta2, {"optimizer.beta2", B, Real{0, 0.999999},
                      always("0.999", "Kingma and Ba, 2015; the recipe may set another value"),
                      "adam, adamw: decay of the second moment", {"beta2"}}},
      {&Plan::eps, {"optimizer.eps", B, Real{1e-16, 1}, always("1e-08", "Kingma and Ba, 2015"),
                    "adam, adamw: added to the root of the second moment", {"eps", "epsilon"}}},
      {&Plan::weight_decay, {"weight_decay", B, Real{0, 10}, depends("set by the recipe"),
                             "weight decay; none on norm layers and biases", {"wd", "l2"}}},
      {&Plan::schedule, {"schedule", B, Choice{optim::known_schedules()}, depends("set by the recipe"),
                         "learning-rate schedule", {"scheduler", "lr_scheduler"}}},
      {&Plan::schedule_steps, {"schedule_steps", B, Whole{0, kMany}, always("0", "as long as the run"),
                               "length of the schedule; later steps keep its last value"}},
      {&Plan::warmup, {"warmup", B, Real{0, 1e9}, depends("set by the recipe"),
                       "steps in which lr rises to its peak; below 1: a fraction of the run",
                         {"warmup_steps", "warmup_epochs"}}},
      {&Plan::lr_end, {"lr_end", B, Real{0, 1}, always("0", "the schedule ends at 0; the recipe may set another value"),
                       "cosine, linear: final lr as a fraction of the peak", {"min_lr", "eta_min"}}},
      {&Plan::ema, {"ema", B, Real{0, 0.999999}, always("0", "off, unless the recipe sets it"),
                    "decay of the weight average (EMA) that evaluation uses; 0: off", {"ema_decay"}}},
      {&Plan::clip, {"clip", B, Real{0, 1e9}, always("0", "off, unless the recipe sets it"),
                     "clip the norm of all gradients to this value; 0: off",
                     {"grad_clip", "max_grad_norm", "clip_grad_norm", "gradient_clip_val"}}},
  };
}

Rows evaluation_options() {
  return {
      {&Plan::early_stop, {"early_stop", B, Whole{0, 1'000'000}, always("0", "off"),
                           "stop after this many evaluations without a better main metric (accuracy, rmse or loss)",
                           {"patience", "early_stopping"}}},
      {&Plan::eval_every, {"eval_every", B, Whole{0, kMany}, always("0", "once per epoch, unless the recipe sets it"),
                           "steps between evaluations", {"eval_interval", "val_every"}}},
      {&Plan::save_every, {"save_every", B, Whole{0, kMany}, always("0", "once per epoch"),
                           "steps between checkpoints", {"save_interval", "checkpoint_every"}}},
      {&Plan::skip_limit, {"skip_limit", B, Whole{0, 1'000'000},
                           always("10", "a gradient scaler skips a few; more means that the run has diverged"),
                           "steps with NaN or infinity are skipped; stop the run after more than this many in a row"}},
  };
}

Rows device_options() {
  return {
      {&Plan::ranks, {"ranks", P, Whole{1, 1 << 16}, always("1", "one process"),
                      "processes on this machine that train together, each on its part of each batch; torchrun, Slurm "
                      "and MPI start them by themselves (docs/parallel.md)",
                      {"world_size", "nproc_per_node", "num_processes"}}},
      {&Plan::rank_timeout, {"rank_timeout", P, Duration{86400.0 * 7},
                             always("600", "longer than a save or an evaluation on one rank"),
                             "with several ranks: how long they wait for one of them before the run ends, to be resumed",
                             {"timeout", "ddp_timeout", "nccl_timeout"}}},
      {&Plan::shard, {"shard", P, Choice{{"none", "optimizer"}}, always("none", "each rank holds all state"),
                      "with several ranks: optimizer divides the optimizer's state and its update among them (ZeRO 1), "
                      "for less memory and one more exchange per step",
                      {"zero", "zero_stage", "fsdp", "sharded"}}},
      {&Plan::pipeline, {"pipeline", P, Whole{1, 1 << 10}, always("1", "each rank computes the whole model"),
                         "stages of the model, each on a rank of its own, which pass the microbatches of a batch on to each "
                         "other; a new run has by default as many ranks, else it is a multiple of them",
                         {"pipeline_parallel", "pp", "pipeline_parallel_size"}}},
      {&Plan::pipeline_cut, {"pipeline_cut", P, Text{"names of segments, such as layer3,head", is_pipeline_cut},
                             always("", "with pipeline=: by measured times and bytes of the segments"),
                             "segments with which the second and later stages begin",
                             {"split_points", "split_spec"}}},
      {&Plan::rank_gradients, {"rank_gradients", P, Choice{{"fp32", "bf16"}}, always("fp32", "sums are those of one process"),
                               "with several ranks: bf16 sums gradients in half the bytes; each is rounded to 8 bits, "
                               "so weights differ from those of one process (docs/parallel.md)",
                               {"bf16_compress", "gradient_compression", "comm_hook"}}},
      {&Plan::device, {"device", P, Text{"cpu, cuda, cuda:N or cuda:all", valid_device},
                       depends("cuda if there is one, else cpu"),
                       "where to train; cuda:all: on all GPUs of this machine, one rank for each", {"gpu", "gpus", "accelerator"}}},
      {&Plan::precision, {"precision", P, Choice{{"fp32", "bf16", "fp16"}}, depends("the fastest in a timed trial"),
                          "dtype of convolutions and matrix products", {"amp", "fp16", "bf16", "mixed_precision"}}},
      {&Plan::half_weights, {"half_weights", P, Flag{}, always("off", "fp32 weights are cast where they are used"),
                             "store weights in bf16 or fp16 (norm layers in fp32); the optimizer keeps fp32 master "
                             "weights"}},
  };
}

Rows memory_options() {
  return {
      {&Plan::microbatch, {"microbatch", P, Whole{1, 1 << 20}, depends("the batch"),
                           "samples per forward pass; if fewer than batch, gradients accumulate; auto: the fastest that fits "
                           "into memory, found by a search before training; the batch stays the same",
                           {"micro_batch", "micro_batch_size", "accumulate", "gradient_accumulation_steps"}}},
      {&Plan::microbatch_schedule, {"microbatch_schedule", P,
                                    Text{"STEP:SAMPLES,... with ascending steps from 1", memory::is_schedule},
                                    always("", "the microbatch changes only if memory runs out"),
                                    "changes of the microbatch to repeat, as the report of another run lists them"}},
      {&Plan::memory_limit, {"memory_limit", P, Bytes{}, always("0", "all that is free"),
                             "the most memory that tensors on the device may hold; a step that needs more runs in "
                             "smaller microbatches"}},
      {&Plan::recompute, {"recompute", P,
                          Text{"none, all, auto, every:N, or names of segments and of their parts",
                               memory::is_recompute},
                          always("none", "recomputing saves memory, but costs up to 40 % more time per step"),
                          "activation checkpointing: segments that backward computes again instead of keeping their "
                          "values; every:2: every second one; layer1,attention: these segments and parts; auto: the "
                          "fewest that make the passes fit into memory, found by a search before training",
                          {"gradient_checkpointing", "activation_checkpointing", "use_checkpoint", "checkpointing"}}},
      {&Plan::optimizer_in_backward, {"optimizer_in_backward", P, Flag{},
                                      always("off", "on saves the memory of gradients, but excludes what needs all of them"),
                                      "update each parameter inside backward and free its gradient at once; not with "
                                      "several passes, clip, fp16, several ranks or on a GPU, and a step that runs out of "
                                      "memory or is not finite ends the run",
                                      {"optimizer_in_bwd"}}},
  };
}

Rows speed_options() {
  return {
      {&Plan::threads, {"threads", P, Whole{0, 256}, depends("by a timed trial"),
                        "loader threads; if not set, chosen by a trial and adjusted during the run; 0: load in the "
                        "training thread",
                        {"num_workers", "workers"}}},
      {&Plan::intra_op, {"intra_op", P, Whole{1, 1024},
                         depends("by a timed trial: the fewest threads that are at most 15 % slower than the best"),
                         "threads per operator", {"num_threads", "omp_threads"}}},
      {&Plan::layout, {"layout", P, Choice{{"channels_last", "contiguous"}},
                       depends("on a CPU by a timed trial, else channels_last"),
                       "memory format of images and convolutions", {"memory_format", "channels_last"}}},
      {&Plan::tf32, {"tf32", P, Flag{}, always("on", "10 bits of mantissa are enough for training"),
                     "CUDA: compute fp32 matrix products and convolutions in TF32", {"allow_tf32"}}},
      {&Plan::cudnn_benchmark, {"cudnn_benchmark", P, Flag{}, always("on", "shapes are fixed"),
                                "CUDA: try convolution algorithms, keep the fastest"}},
      {&Plan::deterministic, {"deterministic", P, Flag{}, depends("on for the CPU, off for CUDA"),
                              "only deterministic algorithms"}},
      {&Plan::anomaly, {"anomaly", P, Flag{}, always("off", "on helps to find a fault, but is slow"),
                        "stop at the operator whose backward pass produces NaN, and name it", {"detect_anomaly"}}},
      {&Plan::tensorboard, {"tensorboard", P, Choice{{"off", "on", "histograms"}},
                            always("on", "under 4 MB for a million steps"),
                            "write TensorBoard event files to the run folder; histograms: also weight histograms"}},
      {&Plan::log, {"log", P, Text{std::string(kLogTargetsExpected), is_log_targets},
                    always("none", "the run folder has the figures; nothing listens and nothing is sent"),
                    "other tools that get the figures, as a list; mlflow:ADDRESS: a run on an MLflow server; wandb: an "
                    "offline run in the run folder that `wandb sync` uploads; prometheus:9400: metrics at "
                    "http://127.0.0.1:9400/metrics (0: a free port)",
                    {"logger", "loggers", "report_to"}}},
      {&Plan::nvtx, {"nvtx", P, Flag{}, always("off", "on is for runs under a profiler"),
                     "CUDA: mark operators and phases for Nsight Systems"}},
      {&Plan::monitor, {"monitor", P, Flag{}, always("on", "takes at most 0.5 % of a core"),
                        "record once a second what the GPU, cores, memory and disks do, for the report"}},
      {&Plan::apply, {"apply", P, Choice{{"none", "doctor"}},
                      always("none", "doctor takes some short trainings of its own"),
                      "doctor: after the first seconds, try what `stoker doctor` would change and a run may go on with, "
                      "and go on with what gains"}},
      {&Plan::profile, {"profile", P, Text{"STEP, or STEP+N for N steps instead of 20", is_profile},
                        always("", "no steps are profiled; `stoker profile RUN` asks a run for a profile"),
                        "record 20 steps from this one on: operators by time, rates, memory, and a trace, in the folder "
                        "profile/ of the run"}},
  };
}
// clang-format on

}  // namespace

const core::OptionTable<Plan>& plan_options() {
  static const core::OptionTable<Plan> table([] {
    Rows all = run_options();
    core::append_rows<Plan>(all, optimizer_options());
    core::append_rows<Plan>(all, evaluation_options());
    core::append_rows<Plan>(all, device_options());
    core::append_rows<Plan>(all, memory_options());
    core::append_rows<Plan>(all, speed_options());
    return all;
  }());
  return table;
}

void set_value(Plan& plan, std::string_view key, std::string_view value) {
  if (plan_options().has(key)) {
    plan_options().set(plan, key, value);
  } else {
    plan.own.insert_or_assign(std::string(key), std::string(value));
  }
}

}  // namespace stoker::train
