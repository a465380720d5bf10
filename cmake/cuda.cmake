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

# The CUDA host headers come from the wheel's neighbours (nvidia/cu13), or from a toolkit beside nvcc.
get_filename_component(site ${STOKER_TORCH_FOUND} DIRECTORY)
find_path(STOKER_CUDA_INCLUDE cuda_runtime_api.h
  PATHS ${site}/nvidia/cu13/include /usr/local/cuda/include NO_DEFAULT_PATH)
if(NOT EXISTS ${torch_lib}/libtorch_cuda.so OR NOT STOKER_CUDA_INCLUDE)
  message(STATUS "torch without CUDA: libstoker_cuda is not built")
  return()
endif()
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
add_library(stoker_torch_cuda INTERFACE)
target_include_directories(stoker_torch_cuda SYSTEM INTERFACE ${STOKER_CUDA_INCLUDE} ${STOKER_CUDA_CRT_INCLUDE})
target_link_libraries(stoker_torch_cuda INTERFACE stoker_torch_cpu)
target_link_options(stoker_torch_cuda INTERFACE
  -Wl,--no-as-needed ${torch_lib}/libtorch_cuda.so ${torch_lib}/libc10_cuda.so)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/stoker/*_cuda.cpp)
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/stoker/*.cu)
# nvcc is called here and not through CMake's CUDA language, which links a second runtime and, in CMake 3.25, knows no
# C++20 for it. A thing that is constexpr is the device's, too; the newest architecture's PTX serves those to come.
find_program(STOKER_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
set(cuda_objects)
if(STOKER_NVCC)
  execute_process(COMMAND ${STOKER_NVCC} --version OUTPUT_VARIABLE nvcc_version)
  string(REGEX MATCH "release ([0-9]+)" ignored "${nvcc_version}")
  set(nvcc_major ${CMAKE_MATCH_1})
  file(STRINGS ${STOKER_CUDA_INCLUDE}/cuda_runtime_api.h runtime REGEX "#define CUDART_VERSION")
  string(REGEX MATCH "([0-9]+)[0-9][0-9][0-9]" ignored "${runtime}")
  if(NOT nvcc_major STREQUAL CMAKE_MATCH_1)
    message(STATUS "nvcc is of CUDA ${nvcc_major}, torch of CUDA ${CMAKE_MATCH_1}: libstoker_cuda is built without *.cu")
    set(cuda_kernels)
  endif()
  foreach(kernel ${cuda_kernels})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${kernel})
    set(object ${PROJECT_BINARY_DIR}/kernels/${name}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${object} DEPENDS ${kernel} DEPFILE ${object}.d VERBATIM COMMENT "nvcc ${name}"
      COMMAND ${STOKER_NVCC} -std=c++20 -O3 -arch=all-major --expt-relaxed-constexpr -Xcompiler=-fPIC,-Wall,-Wextra
        -I${PROJECT_SOURCE_DIR}/src -MD -MF ${object}.d -MT ${object} -c ${kernel} -o ${object})
    list(APPEND cuda_objects ${object})
  endforeach()
else()
  message(STATUS "no nvcc: libstoker_cuda is built without *.cu")
endif()

get_filename_component(cuda_prefix ${STOKER_CUDA_INCLUDE} DIRECTORY)
file(GLOB cudart ${cuda_prefix}/lib/libcudart.so* ${cuda_prefix}/lib64/libcudart.so*)
if(NOT cudart)
  message(FATAL_ERROR "No libcudart beside ${STOKER_CUDA_INCLUDE}; the torch wheel brings one, see tools/bootstrap")
endif()
list(GET cudart 0 cudart)
get_filename_component(cudart_folder ${cudart} DIRECTORY)

add_library(stoker_cuda SHARED ${cuda_sources} ${cuda_objects})
target_include_directories(stoker_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(stoker_cuda PRIVATE stoker_flags stoker_fmt stoker_torch_cuda ${cudart})
target_compile_definitions(stoker_cuda PRIVATE FMT_HEADER_ONLY)  # it has no room to take fmt from
target_link_options(stoker_cuda PRIVATE -Wl,-rpath,${cudart_folder})
if(NOT STOKER_SANITIZE)  # sanitizers leave their runtime to the executable
  target_link_options(stoker_cuda PRIVATE -Wl,-z,defs)
endif()
set_target_properties(stoker_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
# A program calls nothing in it, so a linker that drops such libraries (Ubuntu's) would leave it out.
target_link_options(stoker_cuda INTERFACE -Wl,--no-as-needed)
set_target_properties(stoker_cuda PROPERTIES EXPORT_NAME cuda)
add_library(stoker::cuda ALIAS stoker_cuda)
