// SPDX-License-Identifier: Apache-2.0
// The kernel that gathers batches from images on a GPU. A thread writes up to 16 bytes of a row in one store, with the
// same function as the CPU. Neighbouring threads read neighbouring bytes, also in mirrored rows.
#include <algorithm>

#include "stoker/resident/gather_cuda.h"

namespace stoker::resident {
namespace {

constexpr int kThreads = 128;                    // per block
constexpr std::int64_t kMostBlocksDown = 65535;  // per grid

// `Bytes` bytes, stored at once.
template <int kBytes>
struct alignas(kBytes) Piece {
  std::uint8_t bytes[kBytes];
};

// x: pieces of a row; y: rows.
template <int kBytes>
__global__ void gather_rows(ImageGather work) {
  const int bytes = work.shape.image_bytes();
  const int first = static_cast<int>(blockIdx.x * kThreads + threadIdx.x) * kBytes;
  if (first >= bytes) {
    return;
  }
  for (std::int64_t row = blockIdx.y; row < work.rows; row += gridDim.y) {
    const augment::WindowDraw drawn = work.windows[row];
    Piece<kBytes> piece;
    augment::fill_window(work.shape, drawn, work.pixels + drawn.image * static_cast<std::int64_t>(bytes), first, kBytes,
                         piece.bytes);
    *reinterpret_cast<Piece<kBytes>*>(work.out + row * bytes + first) = piece;
  }
}

template <int kBytes>
void launch(const ImageGather& work, cudaStream_t stream) {
  constexpr int kBlock = kThreads * kBytes;
  const auto across = static_cast<unsigned>((work.shape.image_bytes() + kBlock - 1) / kBlock);
  const auto down = static_cast<unsigned>(std::min(work.rows, kMostBlocksDown));
  gather_rows<kBytes><<<dim3(across, down), kThreads, 0, stream>>>(work);
}

}  // namespace

// The widest store for which the first byte of every row is aligned.
int launch_gather(const ImageGather& work, void* on) {
  const auto stream = static_cast<cudaStream_t>(on);
  const int bytes = work.shape.image_bytes();
  if (bytes % 16 == 0) {
    launch<16>(work, stream);
  } else if (bytes % 4 == 0) {
    launch<4>(work, stream);
  } else {
    launch<1>(work, stream);
  }
  return cudaGetLastError();
}

}  // namespace stoker::resident
