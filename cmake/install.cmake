# SPDX-License-Identifier: Apache-2.0
# The files of `cmake --install build/release --prefix P`: bin/stoker, lib/ with the rooms and libstoker_cuda,
# include/stoker/, and lib/cmake/stoker/ for find_package(stoker) (see stoker-config.cmake.in). P can be moved later.
include(CMakePackageConfigHelpers)
get_property(rooms GLOBAL PROPERTY STOKER_ROOMS)
add_library(stoker_library INTERFACE)
add_library(stoker::stoker ALIAS stoker_library)
set_target_properties(stoker_library PROPERTIES EXPORT_NAME stoker)
target_link_libraries(stoker_library INTERFACE ${rooms})
# So that device::load_cuda() finds libstoker_cuda.so from a program in any folder.
target_link_options(stoker_library INTERFACE "$<INSTALL_INTERFACE:-Wl,-rpath,$<INSTALL_PREFIX>/lib>")

set(exported ${rooms} stoker_library)
if(TARGET stoker_cuda)
  list(APPEND exported stoker_cuda)
endif()
install(TARGETS ${exported} EXPORT stoker-targets LIBRARY DESTINATION lib ARCHIVE DESTINATION lib INCLUDES DESTINATION include)
install(TARGETS stoker RUNTIME DESTINATION bin)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/stoker DESTINATION include FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION share/doc/stoker)
install(FILES ${PROJECT_SOURCE_DIR}/tools/stoker.bash-completion DESTINATION share/bash-completion/completions
  RENAME stoker)

set(package lib/cmake/stoker)
configure_file(${PROJECT_SOURCE_DIR}/cmake/stoker-config.cmake.in ${PROJECT_BINARY_DIR}/stoker-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stoker-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT stoker-targets NAMESPACE stoker:: DESTINATION ${package})
install(FILES ${PROJECT_BINARY_DIR}/stoker-config.cmake ${PROJECT_BINARY_DIR}/stoker-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/torch.cmake ${PROJECT_SOURCE_DIR}/cmake/linked.cmake DESTINATION ${package})
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/find_torch DESTINATION ${package})
