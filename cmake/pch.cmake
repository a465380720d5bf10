# SPDX-License-Identifier: Apache-2.0
# Two precompiled headers, one for the rooms with torch and one for their tests: the headers of torch, fmt and JSON that
# most units include (docs/decisions/precompiled-headers.md). They contain only library headers, so our changes do not
# rebuild them. stoker_header_check (house.cmake) compiles our headers without them, to find missing includes.
#
#   stoker_use_pch(<target> room_pch|test_pch)     does nothing if STOKER_PCH is off (clang-tidy cannot read GCC's)
option(STOKER_PCH "Compile units with torch using precompiled headers" ON)
function(stoker_use_pch target pch)
  if(STOKER_PCH)
    target_precompile_headers(${target} REUSE_FROM ${pch})
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # so that ccache can use it
  endif()
endfunction()
if(NOT STOKER_PCH)
  return()
endif()

set(pch_headers <ATen/TensorOperators.h> <ATen/ops/zeros.h> <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)

function(stoker_pch name)
  cmake_parse_arguments(arg "" "" "LINK;HEADERS;OPTIONS" ${ARGN})
  set(unit ${PROJECT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "")
  add_library(${name} OBJECT ${unit})
  target_link_libraries(${name} PRIVATE stoker_flags stoker_fmt stoker_torch_cpu nlohmann_json::nlohmann_json ${arg_LINK})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS} -fpch-preprocess)
  target_precompile_headers(${name} PRIVATE ${pch_headers} ${arg_HEADERS})
endfunction()

stoker_pch(room_pch)
# Programs are compiled with -fPIE and libraries with -fPIC; a precompiled header works with only one of them.
stoker_pch(test_pch LINK GTest::gtest GTest::gmock HEADERS <gtest/gtest.h> <gmock/gmock.h> OPTIONS -fPIE)
set_target_properties(test_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
