# SPDX-License-Identifier: Apache-2.0
# Parts that are built if what they need is installed, and that can be demanded or left out.

# gba_switch(NAME text): the cache variable NAME, which is ON, OFF or, by default, AUTO.
function(gba_switch name text)
  set(${name} AUTO CACHE STRING "${text}. ON: stop if it cannot be built, OFF: leave it out, AUTO: build it if possible")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  string(TOUPPER "${${name}}" value)
  if(value MATCHES "^(ON|YES|Y|TRUE|1)$")
    set(value ON)
  elseif(value MATCHES "^(OFF|NO|N|FALSE|0)$")
    set(value OFF)
  elseif(NOT value STREQUAL "AUTO")
    message(FATAL_ERROR "${name} is ${${name}}, but must be ON, OFF or AUTO")
  endif()
  set(${name} ${value} PARENT_SCOPE)
endfunction()

# gba_not_built(NAME what reason): ends the configuration if NAME is ON, else says that a part is not built.
function(gba_not_built name what reason)
  if("${${name}}" STREQUAL "ON")
    message(FATAL_ERROR "${name} is ON, but ${what} cannot be built: ${reason}. Install that, or set ${name} to AUTO or OFF.")
  elseif("${${name}}" STREQUAL "OFF")
    message(STATUS "Not built: ${what} (${name} is OFF)")
  else()
    message(STATUS "Not built: ${what}: ${reason}")
  endif()
endfunction()

# install(), if this project is installed.
function(gba_install)
  if(GBA_INSTALL)
    install(${ARGN})
  endif()
endfunction()

# find_package(MPI) for C. A compiler wrapper without headers, as in Debian's openmpi-bin without libopenmpi-dev, would end
# it, and the configuration, by an error.
macro(gba_find_mpi)
  find_program(GBA_MPICC mpicc HINTS ${MPI_HOME} ENV MPI_HOME PATH_SUFFIXES bin DOC "The wrapper that is tried before MPI is looked for")
  if(GBA_MPICC AND NOT CMAKE_CROSSCOMPILING)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/try_mpi.c "#include <mpi.h>\n")
    execute_process(COMMAND ${GBA_MPICC} -fsyntax-only ${CMAKE_CURRENT_BINARY_DIR}/try_mpi.c
      RESULT_VARIABLE GBA_MPICC_STATUS OUTPUT_QUIET ERROR_QUIET)
    if(NOT GBA_MPICC_STATUS EQUAL 0)
      set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)
    endif()
  endif()
  find_package(MPI QUIET COMPONENTS C GLOBAL)
endmacro()
