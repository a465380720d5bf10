# SPDX-License-Identifier: Apache-2.0
# Embeds text files (ours and libraries') into a program as strings, so that they stay ordinary files.
#
#   stoker_embed(<target> <header> <namespace> [<constant> <file>]...)
#
# adds a source to the target that defines `const std::string_view <constant>` as declared in <header>. A changed file
# rebuilds the source. The build does this by running this file as a script.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made by cmake/embed.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
  string(REPLACE "|" ";" PAIRS "${PAIRS}")
  list(LENGTH PAIRS length)
  math(EXPR last "${length} - 1")
  foreach(i RANGE 0 ${last} 2)
    math(EXPR j "${i} + 1")
    list(GET PAIRS ${i} constant)
    list(GET PAIRS ${j} file)
    file(READ ${file} content)
    # Browsers would look for the source maps next to the page, where they do not exist.
    string(REGEX REPLACE "//# sourceMappingURL=[^\n]*" "" content "${content}")
    string(FIND "${content}" ")embedded\"" clash)
    if(NOT clash EQUAL -1)
      message(FATAL_ERROR "${file}: contains )embedded\", the end of the C++ string that would hold the file")
    endif()
    string(APPEND text "const std::string_view ${constant} = R\"embedded(${content})embedded\";\n")
  endforeach()
  file(WRITE ${OUTPUT} "${text}}  // namespace ${NAMESPACE}\n")
  return()
endif()

set(STOKER_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(stoker_embed target header namespace)
  set(files ${ARGN})
  list(FILTER files INCLUDE REGEX "/")
  set(output ${PROJECT_BINARY_DIR}/embedded/${target}.cpp)
  string(JOIN "|" pairs ${ARGN})
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DPAIRS=${pairs}" -DHEADER=${header} -DNAMESPACE=${namespace} -DOUTPUT=${output}
      -P ${STOKER_EMBED_SCRIPT}
    DEPENDS ${files} ${STOKER_EMBED_SCRIPT} COMMENT "Embedding files into ${target}" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
