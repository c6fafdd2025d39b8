# SPDX-License-Identifier: Apache-2.0
# Manual pages have no date and version in the sources. They get those of the release when they are installed. The build tree
# has them, too: man -M build/manuals NAME.

# gba_install_manuals(component folder page...)
function(gba_install_manuals component folder)
  foreach(page IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH page BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(GET page FILENAME file)
    file(READ ${page} text)
    string(REGEX REPLACE "\n(\\.TH [^ ]+ [1-9]) \"\" \"(lib[a-z]+)\"" "\n\\1 \"${GBA_RELEASE_DATE}\" \"\\2 ${PROJECT_VERSION}\""
      dated "${text}")
    if(dated STREQUAL text)
      message(FATAL_ERROR "${page} has no line .TH with an empty date and the name of a library")
    endif()
    string(REGEX REPLACE ".*[.]" "" section ${file})
    set(dated_page ${PROJECT_BINARY_DIR}/manuals/man${section}/${file})
    file(CONFIGURE OUTPUT ${dated_page} CONTENT "${dated}" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    gba_install(FILES ${dated_page} DESTINATION ${folder} COMPONENT ${component})
  endforeach()
endfunction()
