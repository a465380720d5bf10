# SPDX-License-Identifier: Apache-2.0
# Libraries from Debian; docs/decisions/ says why we use each one. Libraries that programs on Stoker also link are in
# linked.cmake; the others are used only inside a room or by tests.
include(linked)
find_package(GTest REQUIRED)
pkg_check_modules(ncurses REQUIRED IMPORTED_TARGET ncursesw)
find_path(STOKER_TOMLPP_INCLUDE toml++/toml.h REQUIRED)
find_path(STOKER_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(STOKER_XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(STOKER_PROTOZERO_INCLUDE protozero/pbf_writer.hpp REQUIRED)
find_path(STOKER_CURL_INCLUDE curl/curl.h REQUIRED)  # the header alone: the library is loaded when it is needed
find_file(STOKER_DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs REQUIRED)
