// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips/tip_rows.h"

namespace stoker::study {

const std::vector<Tip>& known_tips() {
  static const std::vector<Tip> all{
      gradients_to_none(), no_conv_bias(),
      channels_last(),     autocast_bf16(),
      autocast_fp16(),     tf32(),
      cudnn_benchmark(),   fused_optimizer(),
      fused_attention(),   evaluation_without_gradients(),
      created_on_device(), anomaly_mode_off(),
      profiler_off(),      recompute_all(),
      chunked_loss(),      optimizer_in_backward(),
      accumulation_16x2(), accumulation_16x1(),
      larger_batch(),      loader_threads(1),
      loader_threads(2),   shuffled_order(),
      pinned_memory(),     async_copies(),
      jpeg_crop(),         jpeg_path(),
  };
  return all;
}

}  // namespace stoker::study
