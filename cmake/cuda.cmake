# SPDX-License-Identifier: Apache-2.0
# libstoker_cuda: every *_cuda.cpp and *.cu under src/stoker. Programs load this library at run time, so that they start
# fast and run without a GPU. It uses our headers and torch, and registers through stoker_cuda_register(). With -z defs
# a call into a room's .cpp is a link error instead of a load error.
#
#   stoker_gpu_tests(<room>)   adds a ctest entry <room>_gpu, labelled gpu: the suites Gpu* of <room>_tests, which print
#                              a skip message without a GPU. Only one entry runs at a time (one fills the memory).
#                              Building the test program also builds libstoker_cuda. stoker_room_tests() calls it if a
#                              room has files *_gpu_test.cpp; tests/support/gpu.h checks the names of suites and files
function(stoker_gpu_tests room)
  add_test(NAME ${room}_gpu COMMAND ${room}_tests --gtest_filter=Gpu*:*/Gpu*)
  set_tests_properties(${room}_gpu PROPERTIES LABELS gpu RESOURCE_LOCK gpu)
  if(TARGET stoker_cuda)
    add_dependencies(${room}_tests stoker_cuda)
  endif()
endfunction()

# The CUDA host headers come with torch's wheel (nvidia/cu13) or with a toolkit.
get_filename_component(site ${STOKER_TORCH_FOUND} DIRECTORY)
find_path(STOKER_CUDA_INCLUDE cuda_runtime_api.h
  PATHS ${site}/nvidia/cu13/include /usr/local/cuda/include NO_DEFAULT_PATH)
if(NOT EXISTS ${torch_lib}/libtorch_cuda.so OR NOT STOKER_CUDA_INCLUDE)
  message(STATUS "torch without CUDA: libstoker_cuda is not built")
  return()
endif()
# nvcc of the same CUDA version, from a toolkit or from tools/bootstrap. Its headers crt/ complete the runtime's.
file(STRINGS ${STOKER_CUDA_INCLUDE}/cuda_runtime_api.h runtime REGEX "#define CUDART_VERSION")
string(REGEX MATCH "([0-9]+)[0-9][0-9][0-9]" ignored "${runtime}")
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/find_nvcc ${CMAKE_MATCH_1}
  OUTPUT_VARIABLE nvcc ERROR_VARIABLE why OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${why}")
endif()
message(STATUS "nvcc: ${nvcc}")
get_filename_component(nvcc_include ${nvcc}/../../include ABSOLUTE)
add_library(stoker_torch_cuda INTERFACE)
target_include_directories(stoker_torch_cuda SYSTEM INTERFACE ${STOKER_CUDA_INCLUDE} ${nvcc_include})
target_link_libraries(stoker_torch_cuda INTERFACE stoker_torch_cpu)
target_link_options(stoker_torch_cuda INTERFACE
  -Wl,--no-as-needed ${torch_lib}/libtorch_cuda.so ${torch_lib}/libc10_cuda.so)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/stoker/*_cuda.cpp)
# NCCL's header comes with the wheel, its library with libtorch_cuda.
find_path(STOKER_NCCL_INCLUDE nccl.h PATHS ${site}/nvidia/nccl/include ${STOKER_CUDA_INCLUDE} NO_DEFAULT_PATH)
set(nccl_source ${PROJECT_SOURCE_DIR}/src/stoker/parallel/nccl_cuda.cpp)
if(STOKER_NCCL_INCLUDE)
  set_source_files_properties(${nccl_source} PROPERTIES COMPILE_DEFINITIONS USE_C10D_NCCL
    COMPILE_OPTIONS "-isystem;${STOKER_NCCL_INCLUDE}")
else()
  message(STATUS "no nccl.h: several ranks train on CPUs only")
  list(REMOVE_ITEM cuda_sources ${nccl_source})
endif()
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/stoker/*.cu)
# nvcc is called directly: CMake's CUDA language links a second runtime and, in CMake 3.25, does not support C++20 for
# it. constexpr functions may be called on the device. The PTX of the newest architecture is for future ones.
set(STOKER_CUDA_ARCHITECTURES 75 80 90 100 CACHE STRING "Compute capabilities that kernels are compiled for")
list(GET STOKER_CUDA_ARCHITECTURES -1 newest)
set(nvcc_targets -gencode=arch=compute_${newest},code=compute_${newest})
foreach(each ${STOKER_CUDA_ARCHITECTURES})
  list(APPEND nvcc_targets -gencode=arch=compute_${each},code=sm_${each})
endforeach()
set(cuda_objects)
foreach(kernel ${cuda_kernels})
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${kernel})
  set(object ${PROJECT_BINARY_DIR}/kernels/${name}.o)
  get_filename_component(folder ${object} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${object} DEPENDS ${kernel} DEPFILE ${object}.d VERBATIM COMMENT "nvcc ${name}"
    COMMAND ${nvcc} -std=c++20 -O3 ${nvcc_targets} --expt-relaxed-constexpr -Xcompiler=-fPIC,-Wall,-Wextra
      -I${PROJECT_SOURCE_DIR}/src -isystem=${STOKER_CUDA_INCLUDE} -MD -MF ${object}.d -MT ${object} -c ${kernel} -o ${object})
  list(APPEND cuda_objects ${object})
endforeach()

get_filename_component(cuda_prefix ${STOKER_CUDA_INCLUDE} DIRECTORY)
file(GLOB cudart ${cuda_prefix}/lib/libcudart.so* ${cuda_prefix}/lib64/libcudart.so*)
if(NOT cudart)
  message(FATAL_ERROR "No libcudart next to ${STOKER_CUDA_INCLUDE}; the torch wheel has one, see tools/bootstrap")
endif()
list(GET cudart 0 cudart)
get_filename_component(cudart_folder ${cudart} DIRECTORY)

add_library(stoker_cuda SHARED ${cuda_sources} ${cuda_objects})
target_include_directories(stoker_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(stoker_cuda PRIVATE stoker_flags stoker_fmt stoker_torch_cuda ${cudart})
target_compile_definitions(stoker_cuda PRIVATE FMT_HEADER_ONLY)  # it links no room that has fmt
target_link_options(stoker_cuda PRIVATE -Wl,-rpath,${cudart_folder})
if(NOT STOKER_SANITIZE)  # the executable has the sanitizers' runtime
  target_link_options(stoker_cuda PRIVATE -Wl,-z,defs)
endif()
set_target_properties(stoker_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
# A program calls nothing in it, and some linkers (Ubuntu's) drop such libraries.
target_link_options(stoker_cuda INTERFACE -Wl,--no-as-needed)
set_target_properties(stoker_cuda PROPERTIES EXPORT_NAME cuda)
add_library(stoker::cuda ALIAS stoker_cuda)
