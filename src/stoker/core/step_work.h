// SPDX-License-Identifier: Apache-2.0
// The few numbers that a step computes around its loss and before its update, as plain values that can be passed to a
// kernel, and the arithmetic on them. The host calls these functions on numbers in its own memory, the kernels of
// device/step_kernels_cuda.cu on the device's: the same code for both. Without torch. Thread-safe: no state.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker::core {

inline constexpr int kMostTerms = 14;  // of a loss: kMaxScalars (core/events.h) less "loss" and "skipped"

template <typename T>
constexpr bool is_finite(T value) {
  return value - value == 0;  // false for NaN and infinities
}

// The terms of a microbatch's loss (core/loss_terms.h). Pointers are the device's.
struct LossWork {
  int terms = 0;
  const float* sums[kMostTerms] = {};   // S_k
  double weights[kMostTerms] = {};      // w_k
  const double* normalisers = nullptr;  // N_k
  const float* scale = nullptr;         // of the gradient scaler; null: 1
  double* parts = nullptr;              // out: w_k * S_k / N_k
  float* gradients = nullptr;           // out: scale * w_k / N_k
};

struct TermQuotients {
  double part = 0, gradient = 0;
};

// Without counted elements a term is 0, although its sum may not be (label smoothing includes classes without samples).
constexpr TermQuotients divide_term(double sum, double weight, double normaliser, double scale) {
  const double factor = normaliser > 0 ? weight / normaliser : 0;
  return {normaliser > 0 ? sum * factor : 0, factor * scale};
}

constexpr void divide_terms(const LossWork& work) {
  for (int k = 0; k < work.terms; ++k) {
    const double scale = work.scale != nullptr ? *work.scale : 1;
    const TermQuotients term = divide_term(*work.sums[k], work.weights[k], work.normalisers[k], scale);
    work.parts[k] = term.part;
    work.gradients[k] = static_cast<float>(term.gradient);
  }
}

// The weight of an update in an exponential average (optim/ema_weight.h). Null pointers: there is no average.
struct EmaWork {
  double decay = 0;
  double* updates = nullptr;
  double* weight = nullptr;
  float* rounded = nullptr;  // weight
};

constexpr void next_weight(const EmaWork& work, bool skipped) {
  *work.updates += skipped ? 0 : 1;
  *work.weight = skipped ? 0 : std::max(9 / (10 + *work.updates), 1 - work.decay);
  *work.rounded = static_cast<float>(*work.weight);
}

// The decision of a step before it changes weights, and the values that it reports. Pointers are the device's.
struct VerdictWork {
  int terms = 0;
  const double* parts = nullptr;  // of the loss
  const float* norms = nullptr;   // Euclidean, of gradients that are still scaled; combined into one
  std::int64_t norm_count = 0;
  const float* scale = nullptr;     // that the gradients were multiplied by; null: 1
  const float* reported = nullptr;  // scale to report; null: none
  double clip = 0;                  // largest norm of the true gradients; 0: off, and no norm is reported
  bool single = true;               // norms have float32's precision, else float64's
  EmaWork ema;
  float* found_inf = nullptr;  // in: 1 if a gradient is not finite; out: 1 if the step changes nothing
  float* skipped = nullptr;    // in and out: steps in a row that changed nothing
  bool* skip = nullptr;        // out: whether this step changes nothing
  float* scalars = nullptr;    // out: the row described by Step::scalar_names()
  float* divisor = nullptr;    // out: the optimizer's divisor of the gradients
};

inline constexpr double kNormEps = 1e-6;  // torch.nn.utils.clip_grad_norm_'s

// The divisor that reduces gradients of this norm to at most clip: the reciprocal of the factor of
// torch.nn.utils.clip_grad_norm_. NaN for NaN.
constexpr double clip_divisor(double norm, double clip) {
  const double divisor = (norm + kNormEps) / clip;
  return divisor <= 1 ? 1 : divisor;
}

// norm: of all gradients together, still scaled. Returns the divisor; writes all other outputs.
constexpr double decide(const VerdictWork& work, double norm) {
  const auto round = [&](double value) { return work.single ? static_cast<float>(value) : value; };
  double sum = 0;
  for (int k = 0; k < work.terms; ++k) {
    sum += work.parts[k];
  }
  const auto loss = static_cast<float>(sum);
  const double scale = work.scale != nullptr ? *work.scale : 1;
  const double true_norm = round(norm / scale);
  if (!is_finite(loss) || (work.clip > 0 && !is_finite(norm))) {
    *work.found_inf = 1;
  }
  *work.skip = *work.found_inf > 0;
  *work.skipped = *work.skip ? *work.skipped + 1 : 0;
  float* row = work.scalars;
  *row++ = loss;
  for (int k = 0; work.terms > 1 && k < work.terms; ++k) {
    *row++ = static_cast<float>(work.parts[k]);
  }
  if (work.clip > 0) {
    *row++ = static_cast<float>(true_norm);
  }
  *row++ = *work.skipped;
  if (work.reported != nullptr) {
    *row++ = *work.reported;
  }
  if (work.ema.updates != nullptr) {
    next_weight(work.ema, *work.skip);
  }
  return round(round(work.clip > 0 ? clip_divisor(true_norm, work.clip) : 1) * scale);
}

}  // namespace stoker::core
