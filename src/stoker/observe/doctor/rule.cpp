// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/rule.h"

#include <array>

#include "stoker/observe/doctor/rules/all.h"

namespace stoker::observe::doctor {

std::string_view level_name(Level level) {
  constexpr std::array<std::string_view, 4> kNames = {"run", "monitor", "trace", "script"};
  return kNames[static_cast<std::size_t>(level)];
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kAll = {kOomAdvice,
                                         kInputWait,
                                         kCheckpointStall,
                                         kTrackerCost,
                                         kSpikes,
                                         kNeighbour,
                                         kOversubscribedThreads,
                                         kCpuQuota,
                                         kMemPressure,
                                         kSyncPoint,
                                         kPageableH2d,
                                         kNoTensorCore,
                                         kLayout,
                                         kAttentionUnfused,
                                         kLaunchBound,
                                         kAllocChurn,
                                         kRecompiles,
                                         kUnoverlappedAllReduce,
                                         kSerialH2d,
                                         kEpochRestart,
                                         kGcChurn,
                                         kDebugApis,
                                         kOptimizerUnfused,
                                         kEmaLoop,
                                         kZeroGrad,
                                         kEvalWithGrad,
                                         kKeptHistory,
                                         kLeak,
                                         kHostLeak,
                                         kFp16WithoutScaler,
                                         kScalerCollapse,
                                         kSameBatch,
                                         kUnreadResult,
                                         kHostCode,
                                         kReduceEachPass,
                                         kStraggler,
                                         kUnevenWork,
                                         kRanksDrift,
                                         kThrottle,
                                         kLinkDegraded,
                                         kDoublePrecision,
                                         kDataParallel,
                                         kUnusedParameterSearch,
                                         kPredictionsKept,
                                         kFragmentation,
                                         kConvBiasBeforeNorm,
                                         kRecomputeUnneeded,
                                         kPageFaults};
  return kAll;
}

}  // namespace stoker::observe::doctor
