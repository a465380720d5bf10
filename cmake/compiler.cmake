# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, sanitizers, linker and compiler cache for every target of ours.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET default)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")                # assertions of ours are errors, not assert(): nothing to switch off
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

set(STOKER_SANITIZE "" CACHE STRING "Sanitizers for every target, for example address,undefined or thread")

add_library(stoker_flags INTERFACE)
target_compile_options(stoker_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
if(STOKER_SANITIZE)
  add_compile_options(-fsanitize=${STOKER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${STOKER_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12.2 crashes in this pass on instrumented loops at -O3, and takes instrumented members of torch's headers for
    # uninitialised, of which GCC's manual warns. The other presets compile with both.
    add_compile_options(-fno-ipa-cp -Wno-maybe-uninitialized)
  endif()
endif()

# A program that was installed or moved finds our libraries in the lib/ beside its bin/. Given at once: a path that CMake
# rewrites at installation ends in an empty entry until then, which is the current folder.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

# Paths below the source folder are made relative, so that every build folder and every clone share what was compiled.
find_program(STOKER_CCACHE ccache)
if(STOKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers are hundreds of MB: the sloppiness is what ccache's manual asks for with them, and its table of
  # inodes spares hashing them for each unit.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1 ${STOKER_CCACHE})
endif()

# mold links the command line in about a second; torch's own libraries have references that it need not resolve.
find_program(STOKER_MOLD mold)
if(STOKER_MOLD)
  # Without RELRO: where thread-local zeros come first in it, mold 1.10 lets it begin in the middle of a page that need
  # not be mapped, and the program does not start ("cannot apply additional memory protection after relocation").
  add_link_options(-fuse-ld=mold -Wl,--unresolved-symbols=ignore-in-shared-libs -Wl,-z,norelro)
endif()
