# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, sanitizers, linker and compiler cache for all our targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET default)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")                # our assertions are errors, not assert(): nothing to switch off
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

set(STOKER_SANITIZE "" CACHE STRING "Sanitizers for every target, for example address,undefined or thread")

add_library(stoker_flags INTERFACE)
target_compile_options(stoker_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
if(STOKER_SANITIZE)
  add_compile_options(-fsanitize=${STOKER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${STOKER_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12.2 crashes in this pass on instrumented loops at -O3. It also gives false warnings about instrumented code,
    # as GCC's manual says: uninitialised members in torch's headers, overflows in std::string. The sanitizers find the
    # true ones, and the other presets have these warnings.
    add_compile_options(-fno-ipa-cp -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endif()

# An installed or moved program finds our libraries in ../lib. Set for the build too: a path that CMake rewrites at
# installation has an empty entry before that, and an empty entry means the current folder.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

# Paths below the source folder are made relative, so that all build folders and clones share compiled units.
find_program(STOKER_CCACHE ccache)
if(STOKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache's manual asks for this sloppiness with precompiled headers. They have hundreds of MB; the inode cache avoids
  # hashing them for each unit.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1 ${STOKER_CCACHE})
endif()

# gold links the largest test program in 0.3 s, GNU ld in 0.7 s. (mold 1.10 takes 0.2 s, but never ends on some inputs.)
# The linker does not need to resolve references of torch's own libraries.
find_program(STOKER_GOLD ld.gold)
if(STOKER_GOLD)
  add_link_options(-fuse-ld=gold -Wl,--unresolved-symbols=ignore-in-shared-libs)
endif()
