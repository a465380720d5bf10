// SPDX-License-Identifier: Apache-2.0
// Makes the C library keep freed memory of CPU tensors. A step frees its activations and gradients, and the next step
// allocates the same again; memory returned to the kernel in between costs a page fault per page. Called only by
// job::start_process(), which a program that uses Stoker calls itself.
#pragma once

namespace stoker::memory {

// For the whole process, from now on: freed memory stays in the process, including large blocks (mallopt(3), M_MMAP_MAX
// and M_TRIM_THRESHOLD). Only blocks over 64 MiB of threads with their own arena, which cannot hold them, are still
// mapped and unmapped individually. Environment variables (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_MAX_, GLIBC_TUNABLES)
// override this.
void keep_freed_memory();

}  // namespace stoker::memory
