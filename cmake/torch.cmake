# SPDX-License-Identifier: Apache-2.0
# Imported targets for the LibTorch in the PyTorch wheel. Used by our own build and, when installed, by our users'.
# find_package(Torch) is not used: it needs a whole CUDA toolkit, and it links libtorch.so, which loads libtorch_cuda.so
# (0.4 s more start-up, 350 MB more memory).
#
#   stoker_torch_cpu    headers, libtorch_cpu and libc10, for programs to link
#   stoker_fmt          the wheel's fmt headers, without the rest of its include folder; stoker_base has the definitions
#   STOKER_TORCH_FOUND  the folder; if there is none, find_package(stoker) sets stoker_NOT_FOUND_MESSAGE
set(STOKER_TORCH "" CACHE PATH "Folder of the torch package (include/, lib/); the environment variable overrides it")
set(find_torch ${CMAKE_CURRENT_LIST_DIR}/find_torch)
if(NOT EXISTS ${find_torch})  # not installed: our own clone
  set(find_torch ${CMAKE_CURRENT_LIST_DIR}/../tools/find_torch)
endif()
macro(ask_find_torch wish)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env STOKER_TORCH=${wish} ${find_torch} ${STOKER_TORCH_OF_BUILD}
    OUTPUT_VARIABLE torch_found ERROR_VARIABLE why OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
endmacro()
set(torch_wish "$ENV{STOKER_TORCH}")
if(NOT torch_wish)
  set(torch_wish "${STOKER_TORCH}")
endif()
set(status 1)
if(NOT torch_wish AND STOKER_TORCH_FOUND)  # kept as long as it exists: a build does not change its torch by itself
  ask_find_torch("${STOKER_TORCH_FOUND}")
endif()
if(NOT status EQUAL 0)
  ask_find_torch("${torch_wish}")
endif()
if(NOT status EQUAL 0)
  set(why "${why}(for CMake: -DSTOKER_TORCH=/path/to/site-packages/torch)")
  if(NOT CMAKE_FIND_PACKAGE_NAME STREQUAL "stoker")
    message(FATAL_ERROR "${why}")
  endif()
  set(stoker_NOT_FOUND_MESSAGE "${why}")
  return()
endif()
if(STOKER_TORCH_FOUND AND NOT STOKER_TORCH_FOUND STREQUAL torch_found)  # CUDA's headers are next to it
  unset(STOKER_CUDA_INCLUDE CACHE)
  unset(STOKER_NCCL_INCLUDE CACHE)
endif()
set(STOKER_TORCH_FOUND ${torch_found} CACHE INTERNAL "The torch of this build")
message(STATUS "torch: ${STOKER_TORCH_FOUND}")
set(torch_lib ${STOKER_TORCH_FOUND}/lib)

add_library(stoker_c10 SHARED IMPORTED)
set_target_properties(stoker_c10 PROPERTIES IMPORTED_LOCATION ${torch_lib}/libc10.so)
add_library(stoker_torch_cpu SHARED IMPORTED)
set_target_properties(stoker_torch_cpu PROPERTIES IMPORTED_LOCATION ${torch_lib}/libtorch_cpu.so)
target_include_directories(stoker_torch_cpu SYSTEM INTERFACE
  ${STOKER_TORCH_FOUND}/include ${STOKER_TORCH_FOUND}/include/torch/csrc/api/include)
# The wheel is built with NDEBUG, and the layout of classes in its headers (at::RecordFunction) depends on it.
target_compile_definitions(stoker_torch_cpu INTERFACE NDEBUG)
target_link_libraries(stoker_torch_cpu INTERFACE stoker_c10)
target_link_options(stoker_torch_cpu INTERFACE -Wl,-rpath,${torch_lib} -Wl,-rpath-link,${torch_lib})

# Torch-free targets see only fmt of the wheel.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fmt_include)
file(CREATE_LINK ${STOKER_TORCH_FOUND}/include/fmt ${PROJECT_BINARY_DIR}/fmt_include/fmt SYMBOLIC)
add_library(stoker_fmt INTERFACE IMPORTED)
target_include_directories(stoker_fmt SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/fmt_include)
