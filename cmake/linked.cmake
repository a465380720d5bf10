# SPDX-License-Identifier: Apache-2.0
# System libraries that a program on Stoker links. Used by our own build and, when installed, by our users'. On Debian:
# libjpeg62-turbo-dev, libspng-dev, libwebp-dev, libhwy-dev, libonig-dev, libsimdjson-dev, zlib1g-dev, libzstd-dev,
# nlohmann-json3-dev, pkg-config.
set(stoker_required REQUIRED)
if(CMAKE_FIND_PACKAGE_NAME STREQUAL "stoker")  # prints its own message about what is missing
  set(stoker_required QUIET)
endif()
find_package(Threads ${stoker_required})
find_package(PkgConfig ${stoker_required})
if(PkgConfig_FOUND)
  pkg_check_modules(jpeg ${stoker_required} IMPORTED_TARGET libjpeg)
  pkg_check_modules(spng ${stoker_required} IMPORTED_TARGET spng)
  pkg_check_modules(webp ${stoker_required} IMPORTED_TARGET libwebp libwebpdemux)
  pkg_check_modules(highway ${stoker_required} IMPORTED_TARGET libhwy)
  pkg_check_modules(oniguruma ${stoker_required} IMPORTED_TARGET oniguruma)
  pkg_check_modules(simdjson ${stoker_required} IMPORTED_TARGET simdjson)
  pkg_check_modules(zlib ${stoker_required} IMPORTED_TARGET zlib)
  pkg_check_modules(zstd ${stoker_required} IMPORTED_TARGET libzstd)
endif()
find_package(nlohmann_json 3.9 ${stoker_required})
