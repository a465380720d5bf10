# SPDX-License-Identifier: Apache-2.0
# Imported targets for the LibTorch inside the PyTorch wheel. find_package(Torch) is not used: it wants a whole CUDA
# toolkit, and it links libtorch.so, which pulls in libtorch_cuda.so (0.4 s more start-up, 350 MB more memory).
#
#   stoker::torch_cpu    headers, libtorch_cpu and libc10: what the main program links
#   stoker::torch_cuda   libtorch_cuda and libc10_cuda besides: only for libstoker_cuda
#   stoker::fmt          the wheel's own fmt headers, without the rest of its include folder
set(STOKER_TORCH "$ENV{STOKER_TORCH}" CACHE PATH "The folder of the torch package (with include/ and lib/)")
if(NOT STOKER_TORCH)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/find_torch OUTPUT_VARIABLE STOKER_TORCH_FOUND
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE found)
  if(NOT found EQUAL 0)
    message(FATAL_ERROR "No torch 2.11 found: run tools/bootstrap, or give -DSTOKER_TORCH=/path/to/site-packages/torch")
  endif()
  set(STOKER_TORCH ${STOKER_TORCH_FOUND} CACHE PATH "" FORCE)
endif()
message(STATUS "torch: ${STOKER_TORCH}")
set(torch_lib ${STOKER_TORCH}/lib)
if(NOT EXISTS ${torch_lib}/libtorch_cpu.so)
  message(FATAL_ERROR "STOKER_TORCH=${STOKER_TORCH} has no lib/libtorch_cpu.so")
endif()

add_library(stoker_c10 SHARED IMPORTED)
set_target_properties(stoker_c10 PROPERTIES IMPORTED_LOCATION ${torch_lib}/libc10.so)
add_library(stoker_torch_cpu SHARED IMPORTED)
set_target_properties(stoker_torch_cpu PROPERTIES IMPORTED_LOCATION ${torch_lib}/libtorch_cpu.so)
target_include_directories(stoker_torch_cpu SYSTEM INTERFACE
  ${STOKER_TORCH}/include ${STOKER_TORCH}/include/torch/csrc/api/include)
# The wheel is built with NDEBUG, and the layout of classes in its headers (at::RecordFunction) follows it.
target_compile_definitions(stoker_torch_cpu INTERFACE NDEBUG)
target_link_libraries(stoker_torch_cpu INTERFACE stoker_c10)
target_link_options(stoker_torch_cpu INTERFACE -Wl,-rpath,${torch_lib} -Wl,-rpath-link,${torch_lib})
add_library(stoker::torch_cpu ALIAS stoker_torch_cpu)

# The CUDA host headers come from the wheel's neighbours (nvidia/cu13), or from a toolkit beside nvcc.
get_filename_component(site ${STOKER_TORCH} DIRECTORY)
find_path(STOKER_CUDA_INCLUDE cuda_runtime_api.h
  PATHS ${site}/nvidia/cu13/include /usr/local/cuda/include NO_DEFAULT_PATH)
if(EXISTS ${torch_lib}/libtorch_cuda.so AND STOKER_CUDA_INCLUDE)
  set(STOKER_HAS_CUDA_HEADERS ON)
  add_library(stoker_torch_cuda INTERFACE)
  # cuda_runtime.h includes crt/, which the wheel leaves to another one; tools/bootstrap fetches it.
  set(cache $ENV{STOKER_CACHE})
  if(NOT cache)
    set(cache $ENV{HOME}/.cache/stoker)
  endif()
  find_path(STOKER_CUDA_CRT_INCLUDE crt/host_config.h
    PATHS ${STOKER_CUDA_INCLUDE} ${cache}/cuda-crt-13.0.88/nvidia/cu13/include $ENV{CUDA_HOME}/include
      /usr/local/cuda/include NO_DEFAULT_PATH)
  if(NOT STOKER_CUDA_CRT_INCLUDE)
    message(FATAL_ERROR "No crt/host_config.h for ${STOKER_CUDA_INCLUDE}/cuda_runtime.h; tools/bootstrap fetches it")
  endif()
  target_include_directories(stoker_torch_cuda SYSTEM INTERFACE ${STOKER_CUDA_INCLUDE} ${STOKER_CUDA_CRT_INCLUDE})
  target_link_libraries(stoker_torch_cuda INTERFACE stoker_torch_cpu)
  target_link_options(stoker_torch_cuda INTERFACE
    -Wl,--no-as-needed ${torch_lib}/libtorch_cuda.so ${torch_lib}/libc10_cuda.so)
  add_library(stoker::torch_cuda ALIAS stoker_torch_cuda)
else()
  message(STATUS "torch without CUDA: libstoker_cuda is not built")
endif()

# Torch-free targets see fmt and nothing else of the wheel.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fmt_include)
file(CREATE_LINK ${STOKER_TORCH}/include/fmt ${PROJECT_BINARY_DIR}/fmt_include/fmt SYMBOLIC)
add_library(stoker_fmt INTERFACE)
target_include_directories(stoker_fmt SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/fmt_include)
target_compile_definitions(stoker_fmt INTERFACE FMT_HEADER_ONLY)
add_library(stoker::fmt ALIAS stoker_fmt)
