# SPDX-License-Identifier: Apache-2.0
# libstoker_cuda: every *_cuda.cpp under src/stoker (and *.cu where nvcc is found), in a library of its own that the
# programs load at run time, so that they start fast and run without a GPU. It sees our headers and torch, and registers
# through stoker_cuda_register(); -z defs makes a call into a room's .cpp a link error here instead of a failure to load.
#
#   stoker_gpu_tests(<room>)   a ctest entry <room>_gpu, labelled gpu: the suites Gpu* of <room>_tests, which skip aloud
#                              without a GPU; the tests' program gets libstoker_cuda built with it
function(stoker_gpu_tests room)
  if(NOT TARGET ${room}_tests)
    return()
  endif()
  add_test(NAME ${room}_gpu COMMAND ${room}_tests --gtest_filter=Gpu*)
  set_tests_properties(${room}_gpu PROPERTIES LABELS gpu)
  if(TARGET stoker_cuda)
    add_dependencies(${room}_tests stoker_cuda)
  endif()
endfunction()

if(NOT STOKER_HAS_CUDA_HEADERS)
  return()
endif()
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/stoker/*_cuda.cpp)
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/stoker/*.cu)
if(cuda_kernels)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
  else()
    set(cuda_kernels)
  endif()
endif()

get_filename_component(cuda_prefix ${STOKER_CUDA_INCLUDE} DIRECTORY)
file(GLOB cudart ${cuda_prefix}/lib/libcudart.so* ${cuda_prefix}/lib64/libcudart.so*)
if(NOT cudart)
  message(FATAL_ERROR "No libcudart beside ${STOKER_CUDA_INCLUDE}; the torch wheel brings one, see tools/bootstrap")
endif()
list(GET cudart 0 cudart)
get_filename_component(cudart_folder ${cudart} DIRECTORY)

add_library(stoker_cuda SHARED ${cuda_sources} ${cuda_kernels})
target_include_directories(stoker_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(stoker_cuda PRIVATE stoker_flags stoker_fmt stoker_torch_cuda ${cudart})
target_link_options(stoker_cuda PRIVATE -Wl,-rpath,${cudart_folder})
if(NOT STOKER_SANITIZE)  # sanitizers leave their runtime to the executable
  target_link_options(stoker_cuda PRIVATE -Wl,-z,defs)
endif()
set_target_properties(stoker_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
add_library(stoker::cuda ALIAS stoker_cuda)
