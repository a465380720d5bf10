// SPDX-License-Identifier: Apache-2.0
// The plan of a run: every value is decided, none is optional, each has an origin and a reason. Made by resolve() and
// measure(), printed by `stoker plan`, saved with the run, and read again by plan=FILE. Equal plans give equal bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stoker/core/option.h"
#include "stoker/core/plan_row.h"

namespace stoker::train {

struct Plan {
  // behaviour: the result of training
  std::string task;  // the kind of task, "image_classification"
  std::string model;
  std::string weights;       // safetensors file or checkpoint to start from; empty: from scratch
  std::int64_t freeze = 0;   // leading groups of segments that are not trained
  bool freeze_norm = false;  // batch norms keep the running statistics of weights, and use them in training
  std::int64_t epochs = 0;
  std::int64_t steps = 0;  // 0: epochs decides
  double time = 0;         // seconds after which training stops; 0: no limit
  std::int64_t batch = 0;  // global batch, samples
  std::int64_t seed = 0;
  double lr = 0;         // peak, for a batch of lr_batch samples
  std::string lr_scale;  // "linear", "sqrt", "none"
  std::int64_t lr_batch = 0;
  std::string optimizer;
  double momentum = 0;                   // sgd
  bool nesterov = false;                 // sgd
  double beta1 = 0, beta2 = 0, eps = 0;  // adam, adamw
  double weight_decay = 0;
  std::string schedule;
  std::int64_t schedule_steps = 0;  // length of the schedule; 0: that of the run; later steps keep the last value
  double warmup = 0;                // below 1: share of all steps; else steps
  double lr_end = 0;                // cosine, linear: final value as a share of the peak
  bool sync_bn = false;             // ranks: batch norms take the statistics of all ranks' samples
  double ema = 0;                   // decay; 0: off
  double clip = 0;                  // largest gradient norm; 0: off
  std::int64_t early_stop = 0;      // evaluations without improvement; 0: off
  std::int64_t eval_every = 0;      // steps; 0: once per epoch
  std::int64_t save_every = 0;      // steps; 0: once per epoch
  std::int64_t skip_limit = 0;      // non-finite steps in a row to skip before the run stops
  double val = 0;                   // share of train for validation if there is no validation split
  std::string tail;                 // "keep", "drop": the last, smaller batch of an epoch

  core::TaskValues own;  // behaviour that only the task knows

  // performance: the speed of training
  std::int64_t ranks = 1;      // processes that train together, each on its part of each batch
  std::string shard = "none";  // what ranks divide among them: "none", "optimizer"
  std::int64_t pipeline = 1;   // stages of the model, each on a rank of its own; neighbouring ranks are one pipeline
  std::string pipeline_cut;    // segments with which the second and later stages begin: "layer3,head"
  double rank_timeout = 600;   // seconds that a rank waits for another one
  std::string rank_gradients = "fp32";  // dtype in which ranks sum gradients: "fp32", "bf16"
  std::string device;
  std::string precision;            // "fp32", "bf16", "fp16"
  bool half_weights = false;        // weights in precision's half type, norms in fp32; the optimizer keeps fp32 masters
  std::int64_t microbatch = 0;      // samples per forward pass
  std::string microbatch_schedule;  // of another run, to repeat (memory/microbatch.h); empty: none
  std::int64_t memory_limit = 0;    // bytes that tensors on the device may hold; 0: what is free
  std::string recompute = "none";   // memory::RecomputeChoice as text
  bool optimizer_in_backward = false;  // parameters are updated inside backward, and their gradients freed
  std::int64_t threads = 0;            // loader threads; 0: operator threads load between steps
  std::int64_t intra_op = 0;           // threads per operator
  std::string layout;                  // "channels_last", "contiguous"
  bool tf32 = false;
  bool cudnn_benchmark = false;
  bool deterministic = false;
  bool anomaly = false;
  std::string tensorboard;  // off, on, histograms: event files in the run folder
  bool nvtx = false;
  bool monitor = true;         // figures of the machine are recorded beside the run (observe/monitor)
  std::string log = "none";    // other tools that get the figures (train/log_targets.h)
  std::string apply = "none";  // none, doctor: what its first steps show is tried, and kept where it gains
  std::string profile;         // steps to profile, train::ProfileSteps as text; empty: none

  // Origin and reason of each value, by key.
  struct Note {
    core::Origin origin = core::Origin::kDefault;
    std::string reason;
  };
  std::map<std::string, Note, std::less<>> notes;

  // The peak learning rate for this batch: lr scaled from lr_batch to batch by lr_scale.
  [[nodiscard]] double peak_lr() const;
  // All values in the order of plan_options(), then those of the task.
  [[nodiscard]] std::vector<core::PlanRow> rows() const;
};

// The plan as JSON text and back. ConfigError names the key that is unknown, missing or out of range, or the Stoker
// version that reads a plan of an older format.
[[nodiscard]] std::string plan_to_json(const Plan& plan);
[[nodiscard]] Plan plan_from_json(const std::string& text);

}  // namespace stoker::train
