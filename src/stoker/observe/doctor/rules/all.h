// SPDX-License-Identifier: Apache-2.0
// The rules, one file each beside this one. Used by rule.cpp.
#pragma once

#include "stoker/observe/doctor/rule.h"

namespace stoker::observe::doctor {

extern const Rule kInputWait, kCheckpointStall, kTrackerCost, kNeighbour, kOversubscribedThreads, kCpuQuota,
    kMemPressure, kSpikes, kSyncPoint, kLaunchBound, kAllocChurn, kRecompiles, kUnoverlappedAllReduce, kSerialH2d,
    kNoTensorCore, kLayout, kPageableH2d, kAttentionUnfused, kEmaLoop, kEpochRestart, kGcChurn, kDebugApis,
    kOptimizerUnfused, kZeroGrad, kEvalWithGrad, kKeptHistory, kLeak, kHostLeak, kFp16WithoutScaler, kScalerCollapse,
    kSameBatch, kUnreadResult, kHostCode, kReduceEachPass, kStraggler, kUnevenWork, kRanksDrift, kOomAdvice, kThrottle,
    kLinkDegraded, kDoublePrecision, kDataParallel, kUnusedParameterSearch, kPredictionsKept, kFragmentation,
    kConvBiasBeforeNorm, kRecomputeUnneeded, kPageFaults;

}  // namespace stoker::observe::doctor
