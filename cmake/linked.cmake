# SPDX-License-Identifier: Apache-2.0
# Libraries of the system that a program on Stoker links, for our own build and, installed, for our users'. On Debian:
# libjpeg62-turbo-dev, libspng-dev, libonig-dev, nlohmann-json3-dev, pkg-config.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(jpeg REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(spng REQUIRED IMPORTED_TARGET spng)
pkg_check_modules(oniguruma REQUIRED IMPORTED_TARGET oniguruma)
find_package(nlohmann_json 3.9 REQUIRED)
