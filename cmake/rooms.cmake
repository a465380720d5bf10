# SPDX-License-Identifier: Apache-2.0
# A room is one static library, stoker_<room>, from the .cpp files under src/stoker/<room>/, and one test binary,
# <room>_tests, from the files under tests/<room>/. Files are found by name: a new file needs no edit here.
#
#   stoker_room(<room> [TORCH] [LINK target...] [ROOMS room...] [part])
#   stoker_room_tests(<room> [LINK target...] [part])     only LINK is linked if tests/<room>/ belongs to no room
#
# part, for a room that is built as two libraries (with torch and without): FOLDER <folder>, and ONLY <regex> or
# EXCEPT <regex> to select its files.
set(STOKER_DATA_WITH_TORCH "image_loader|tensor_source|token_windows")  # files of data/ that need torch

function(stoker_choose_files variable only except)
  if(only)
    list(FILTER ${variable} INCLUDE REGEX "${only}")
  endif()
  if(except)
    list(FILTER ${variable} EXCLUDE REGEX "${except}")
  endif()
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()

function(stoker_room room)
  cmake_parse_arguments(arg "TORCH" "FOLDER;ONLY;EXCEPT" "LINK;ROOMS" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${room})
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/src/stoker/${arg_FOLDER})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_cuda\\.cpp$")  # these belong to libstoker_cuda
  stoker_choose_files(sources "${arg_ONLY}" "${arg_EXCEPT}")
  add_library(stoker_${room} STATIC ${sources})
  add_library(stoker::${room} ALIAS stoker_${room})
  set_target_properties(stoker_${room} PROPERTIES EXPORT_NAME ${room})
  set_property(GLOBAL APPEND PROPERTY STOKER_ROOMS stoker_${room})  # for cmake/install.cmake
  target_compile_features(stoker_${room} PUBLIC cxx_std_20)
  target_include_directories(stoker_${room} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  list(TRANSFORM arg_ROOMS PREPEND stoker_ OUTPUT_VARIABLE rooms)
  target_link_libraries(stoker_${room} PUBLIC ${rooms} ${arg_LINK} stoker_fmt PRIVATE $<BUILD_INTERFACE:stoker_flags>)
  if(arg_TORCH)
    target_link_libraries(stoker_${room} PUBLIC stoker_torch_cpu)
    stoker_use_pch(stoker_${room} room_pch)
  else()
    stoker_use_pch(stoker_${room} plain_pch)
  endif()
endfunction()

function(stoker_room_tests room)
  cmake_parse_arguments(arg "" "FOLDER;ONLY;EXCEPT" "LINK" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${room})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${arg_FOLDER}/*_test.cpp)
  stoker_choose_files(sources "${arg_ONLY}" "${arg_EXCEPT}")
  if(NOT sources)
    return()
  endif()
  set(own "")
  if(TARGET stoker_${room})
    set(own stoker_${room})
  endif()
  add_executable(${room}_tests ${sources})
  target_include_directories(${room}_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${room}_tests PRIVATE ${own} ${arg_LINK} own_cache stoker_flags GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${room}_tests PRIVATE ${STOKER_TEST_OPTIONS})
  stoker_needs_torch(needs_torch ${room}_tests)
  if(needs_torch)
    stoker_use_pch(${room}_tests test_pch)
  else()
    stoker_use_pch(${room}_tests plain_test_pch)
  endif()
  add_test(NAME ${room} COMMAND ${room}_tests)
  set_tests_properties(${room} PROPERTIES ENVIRONMENT
    "STOKER_SOURCE=${PROJECT_SOURCE_DIR};STOKER_BIN=$<TARGET_FILE_DIR:stoker>;STOKER_DATA=${STOKER_DATA}")
  if(sources MATCHES "_gpu_test\\.cpp")
    stoker_gpu_tests(${room})  # cmake/cuda.cmake
  endif()
endfunction()
