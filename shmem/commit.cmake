# SPDX-License-Identifier: Apache-2.0
# cmake -D SOURCE_DIR=... -D OUTPUT=... -P commit.cmake: writes the file that tells the commit of this tree, if it has
# changed. Run by each build, since a commit needs no new configuration.
set(COMMIT unknown)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE output RESULT_VARIABLE result OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(result EQUAL 0)
    set(COMMIT ${output})
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/commit.cpp.in ${OUTPUT} @ONLY)
