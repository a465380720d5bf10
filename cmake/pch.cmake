# SPDX-License-Identifier: Apache-2.0
# Precompiled headers (docs/decisions/precompiled-headers.md): room_pch and test_pch for rooms with torch and their
# tests, plain_pch and plain_test_pch for rooms without torch. They contain only library headers, so our changes do not
# rebuild them. stoker_header_check (house.cmake) compiles our headers without them, to find missing includes.
#
#   stoker_use_pch(<target> <one of the four>)     does nothing if STOKER_PCH is off (clang-tidy cannot read GCC's)
set(STOKER_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)  # tests compile a quarter faster; they run only once
option(STOKER_PCH "Compile with precompiled headers" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(STOKER_PCH OFF)  # the options here are g++'s
endif()
function(stoker_use_pch target pch)
  if(NOT STOKER_PCH)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${pch})
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # so that ccache can use it
  if(NOT pch MATCHES "plain")  # units that include no torch compile a second faster without a header of torch
    get_target_property(units ${target} SOURCES)
    foreach(unit ${units})
      if(unit IN_LIST units_without_torch)
        set_source_files_properties(${unit} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endif()
endfunction()
if(NOT STOKER_PCH)
  return()
endif()

find_package(Python3 COMPONENTS Interpreter REQUIRED)
execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/units_without_torch
  OUTPUT_VARIABLE units_without_torch OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" units_without_torch "${units_without_torch}")
list(TRANSFORM units_without_torch PREPEND ${PROJECT_SOURCE_DIR}/)

set(plain_headers <algorithm> <filesystem> <functional> <memory> <string> <vector> <fmt/format.h> <fmt/ranges.h>)
set(torch_headers <ATen/TensorOperators.h> <ATen/ops/zeros.h> <nlohmann/json.hpp>)
set(test_headers <nlohmann/json.hpp> <gtest/gtest.h> <gmock/gmock.h>)

#   stoker_pch(<name> [LINK target...] [HEADERS header...] [OPTIONS option...])     beside plain_headers
function(stoker_pch name)
  cmake_parse_arguments(arg "" "" "LINK;HEADERS;OPTIONS" ${ARGN})
  set(unit ${PROJECT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "")
  add_library(${name} OBJECT ${unit})
  target_link_libraries(${name} PRIVATE stoker_flags stoker_fmt nlohmann_json::nlohmann_json ${arg_LINK})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS} -fpch-preprocess)
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS} ${plain_headers})
endfunction()

stoker_pch(plain_pch)
stoker_pch(room_pch LINK stoker_torch_cpu HEADERS ${torch_headers})
# Programs are compiled with -fPIE and libraries with -fPIC; a precompiled header works with only one of them.
stoker_pch(plain_test_pch LINK GTest::gtest GTest::gmock HEADERS ${test_headers}
  OPTIONS -fPIE ${STOKER_TEST_OPTIONS})
stoker_pch(test_pch LINK stoker_torch_cpu GTest::gtest GTest::gmock HEADERS ${torch_headers} ${test_headers}
  OPTIONS -fPIE ${STOKER_TEST_OPTIONS})
set_target_properties(plain_test_pch test_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
