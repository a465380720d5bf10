# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: tests/fuzz/<name>_fuzz.cpp, a function that takes any bytes and ends the process on an error. Without
# STOKER_FUZZ the program fuzz_<name>_replay is a test that runs it on the committed inputs of tests/fuzz/corpus/<name>
# (its name does not end in _tests, because make bundle packs those). In the preset fuzz, with STOKER_FUZZ, libFuzzer
# runs it, and the build target fuzzers builds them all; tests/fuzz/<name>_mutator.cpp, if there is one, makes the inputs.
#
#   stoker_fuzz_targets(<name>... LINK target...)     in tests/CMakeLists.txt; the linked targets need no torch
option(STOKER_FUZZ "Build the fuzz targets for libFuzzer (clang)" OFF)
function(stoker_fuzz_targets)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  if(STOKER_FUZZ)  # thousands of comparisons for each image, which say nothing about it: half of the time
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/stoker/data/decode/jpeg_tables.cpp TARGET_DIRECTORY stoker_data_plain
      APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize-coverage=trace-cmp)
  endif()
  add_custom_target(fuzzers)
  foreach(name ${arg_UNPARSED_ARGUMENTS})
    set(target fuzz_${name}_tests)  # the name that stoker_label_torch_free_tests() expects for the test fuzz_<name>
    add_executable(${target} fuzz/${name}_fuzz.cpp)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${target} PRIVATE ${arg_LINK} stoker_flags)
    add_dependencies(fuzzers ${target})
    if(STOKER_FUZZ)
      if(EXISTS ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_mutator.cpp)
        target_sources(${target} PRIVATE fuzz/${name}_mutator.cpp)
      endif()
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
      set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}_fuzz RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    else()
      target_sources(${target} PRIVATE fuzz/replay.cpp)
      set_target_properties(${target} PROPERTIES OUTPUT_NAME fuzz_${name}_replay)
      add_test(NAME fuzz_${name} COMMAND ${target} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    endif()
  endforeach()
endfunction()
