# SPDX-License-Identifier: Apache-2.0
# A room is one static library, stoker_<room>, of the .cpp files under src/stoker/<room>/, and one test binary,
# <room>_tests, of the files under tests/<room>/. Files are found by name: adding one needs no edit here.
#
#   stoker_room(<room> [TORCH] [LINK target...] [ROOMS room...])
#   stoker_room_tests(<room> [LINK target...])
function(stoker_room room)
  cmake_parse_arguments(arg "TORCH" "" "LINK;ROOMS" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/stoker/${room})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_cuda\\.cpp$")  # these belong to libstoker_cuda
  add_library(stoker_${room} STATIC ${sources})
  add_library(stoker::${room} ALIAS stoker_${room})
  target_include_directories(stoker_${room} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM arg_ROOMS PREPEND stoker_ OUTPUT_VARIABLE rooms)
  target_link_libraries(stoker_${room} PUBLIC ${rooms} ${arg_LINK} stoker_fmt PRIVATE $<BUILD_INTERFACE:stoker_flags>)
  if(arg_TORCH)
    target_link_libraries(stoker_${room} PUBLIC stoker_torch_cpu)
  endif()
endfunction()

function(stoker_room_tests room)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${room}_tests ${sources})
  target_include_directories(${room}_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${room}_tests PRIVATE stoker_${room} ${arg_LINK} stoker_flags GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${room} COMMAND ${room}_tests)
  set_tests_properties(${room} PROPERTIES ENVIRONMENT
    "STOKER_SOURCE=${PROJECT_SOURCE_DIR};STOKER_BIN=$<TARGET_FILE_DIR:stoker>;STOKER_DATA=${STOKER_DATA}")
endfunction()
