// SPDX-License-Identifier: Apache-2.0
// Memory used by copies to a device, freed so that a lost device does not end the process. Torch's allocators record
// streams when such memory is freed, and throw if the device is lost; thrown by a tensor's destructor, that is
// std::terminate(). Used by device, data and libstoker_cuda, so everything is in this header. Thread-safe.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <atomic>
#include <memory>
#include <utility>

namespace stoker::core {

// Frees as the allocator does. If freeing throws, the memory is leaked. After an error of torch that means that the
// device is lost, all memory freed later is leaked too: the device is not used again.
inline void free_guarded(void* context) noexcept {
  static std::atomic<bool> lost = false;
  const std::unique_ptr<c10::DataPtr> memory(static_cast<c10::DataPtr*>(context));
  const c10::DeleterFnPtr free = memory->get_deleter();
  void* const freed = memory->release_context();
  if (freed == nullptr || lost) {
    return;
  }
  try {
    free(freed);
  } catch (const c10::Error&) {
    lost = true;
  } catch (...) {  // no host memory for the mark
  }
}

// The same tensor, with memory that free_guarded() frees. fresh: a tensor that nothing else uses and that fills its
// storage.
[[nodiscard]] inline at::Tensor guarded(const at::Tensor& fresh) {
  auto memory = std::make_unique<c10::DataPtr>(fresh.storage().set_data_ptr(c10::DataPtr()));
  void* const data = memory->get();
  return at::for_blob(data, fresh.sizes())
      .strides(fresh.strides())
      .context(memory.release(), &free_guarded)
      .target_device(fresh.device())
      .options(fresh.options())
      .make_tensor();
}

// The value by which the allocator of a guarded tensor knows its memory; null for every other tensor.
[[nodiscard]] inline const c10::DataPtr* guarded_memory(const at::Tensor& tensor) {
  return tensor.storage().data_ptr().cast_context<c10::DataPtr>(&free_guarded);
}

}  // namespace stoker::core
