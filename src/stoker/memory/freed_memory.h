// SPDX-License-Identifier: Apache-2.0
// The C library keeps what tensors on the CPU give back. A step frees its activations and gradients, and the next one
// asks for the same again; memory that went back to the kernel in between comes as pages of zeros, a fault each. Called
// by job::start_process() alone, which a program on Stoker calls for itself.
#pragma once

namespace stoker::memory {

// For the whole process, from here on: freed memory stays with it, that of large blocks, too (mallopt(3), M_MMAP_MAX
// and M_TRIM_THRESHOLD). Only blocks over 64 MiB of threads that have an arena of their own, which cannot hold them,
// are still mapped and given back one by one. A setting in the environment (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_MAX_,
// GLIBC_TUNABLES) goes before this one.
void keep_freed_memory();

}  // namespace stoker::memory
