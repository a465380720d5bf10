// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/trier.h"

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"

namespace stoker::study {
namespace {

constexpr double kFar = 1.1;

}  // namespace

Tried Trier::try_one(const Cure& cure) {
  say_(fmt::format("trying {}\n", change_text(cure)));
  Tried tried{.cure = cure, .gain = {}, .kept = false, .trouble = {}};
  try {
    tried.gain = gain_of(cure);
    tried.kept = pays(tried.gain);
  } catch (const DataError& error) {
    tried.trouble = error.what();
    say_("  " + tried.trouble + "\n");
  }
  if (tried.kept) {
    kept_.push_back(cure);
  }
  return tried;
}

Ratio Trier::gain_of(const Cure& cure) {
  std::vector<Cure> changed = kept_;
  changed.push_back(cure);
  std::vector<double> with, without;
  Ratio gain;
  for (int pair = 0; pair < pairs_ && !(pair >= kFarPairs && is_far(gain, kFar)); ++pair) {
    for (const bool first : {true, false}) {
      const bool change = (pair % 2 == 0) != first;  // who begins takes turns
      (change ? with : without).push_back(speed_(change ? changed : kept_));
    }
    gain = ratio_of(with, without);
    say_(fmt::format("  turn {} of {}: {:.2f} steps/s without, {:.2f} with\n", pair + 1, pairs_, without.back(),
                     with.back()));
  }
  return gain;
}

}  // namespace stoker::study
