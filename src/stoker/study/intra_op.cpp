// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/intra_op.h"

#include <ATen/Parallel.h>

#include "stoker/device/cpu_quota.h"

namespace stoker::study {

int intra_op_threads(int asked) { return asked > 0 ? asked : device::cpu_quota().cores; }

IntraOp::IntraOp(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
IntraOp::~IntraOp() { at::set_num_threads(before_); }

}  // namespace stoker::study
