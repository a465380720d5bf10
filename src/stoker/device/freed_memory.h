// SPDX-License-Identifier: Apache-2.0
// Whether and how freed memory stays with the process. A step frees its activations and gradients, and the next step
// allocates the same again; memory returned to the kernel in between costs a page fault per page. Large tensors are
// kept by device/page_heap.h, the rest by the C library.
#pragma once

namespace stoker::device {

// False if the environment says how freed memory is handled: MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_MAX_ or
// GLIBC_TUNABLES is set; and under AddressSanitizer, which must see each block. Then Stoker changes nothing: all memory
// comes from malloc and goes back there.
[[nodiscard]] bool keeps_freed_memory();
// For the whole process, from now on: what is freed stays in the heap of the C library (mallopt(3), M_MMAP_MAX and
// M_TRIM_THRESHOLD). Only blocks over 64 MiB of threads with their own arena, which cannot hold them, are still mapped
// and unmapped individually. Does nothing if !keeps_freed_memory(). Called only by job::start_process(), which a
// program that uses Stoker calls itself.
void keep_freed_memory();

}  // namespace stoker::device
