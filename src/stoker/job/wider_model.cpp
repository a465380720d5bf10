// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/wider_model.h"

#include <algorithm>

#include "stoker/models/registry.h"

namespace stoker::job {

std::string widest_that_fits(const std::string& model, double epochs, const std::vector<std::string>& known,
                             const std::function<double(const std::string& model)>& flops_of) {
  std::string widest;
  if (epochs < kWidthPays) {
    return widest;
  }
  const double flops = flops_of(model);
  for (std::string wider = models::wider_model(model); !wider.empty() && std::ranges::find(known, wider) != known.end();
       wider = models::wider_model(wider)) {
    const double its_flops = flops_of(wider);
    if (!(flops > 0 && its_flops > 0 && epochs * flops / its_flops >= kWidthPays)) {
      break;
    }
    widest = wider;
  }
  return widest;
}

}  // namespace stoker::job
