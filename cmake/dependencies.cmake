# SPDX-License-Identifier: Apache-2.0
# What Debian has and we do not write ourselves; docs/decisions/ says why each one. What a program on the installed
# library links, too, is in linked.cmake; the rest is used inside a room or by tests alone.
include(linked)
find_package(GTest REQUIRED)
find_path(STOKER_TOMLPP_INCLUDE toml++/toml.h REQUIRED)
find_path(STOKER_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(STOKER_XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(STOKER_PROTOZERO_INCLUDE protozero/pbf_writer.hpp REQUIRED)
find_file(STOKER_DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs REQUIRED)
