# SPDX-License-Identifier: Apache-2.0
# What Debian has and we do not write ourselves; docs/decisions/ says why each one.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(jpeg REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(spng REQUIRED IMPORTED_TARGET spng)
pkg_check_modules(oniguruma REQUIRED IMPORTED_TARGET oniguruma)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(GTest REQUIRED)
find_path(STOKER_TOMLPP_INCLUDE toml++/toml.h REQUIRED)
find_path(STOKER_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(STOKER_XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(STOKER_PROTOZERO_INCLUDE protozero/pbf_writer.hpp REQUIRED)
find_file(STOKER_DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs REQUIRED)
