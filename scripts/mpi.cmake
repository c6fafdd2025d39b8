# SPDX-License-Identifier: Apache-2.0
# Finds the makes of MPI that are installed.

# gba_has_mpi_headers(variable wrapper): whether an MPI's compiler wrapper finds mpi.h, which Debian's openmpi-bin without
# libopenmpi-dev does not.
function(gba_has_mpi_headers variable wrapper)
  file(WRITE ${PROJECT_BINARY_DIR}/try_mpi.c "#include <mpi.h>\n")
  execute_process(COMMAND ${wrapper} -fsyntax-only ${PROJECT_BINARY_DIR}/try_mpi.c
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(${variable} ON PARENT_SCOPE)
  else()
    set(${variable} OFF PARENT_SCOPE)
  endif()
endfunction()

# find_package(MPI) for C: the MPI of mpicc. A wrapper without headers would end it, and the configuration, by an error.
macro(gba_find_mpi)
  find_program(GBA_MPICC mpicc HINTS ${MPI_HOME} ENV MPI_HOME PATH_SUFFIXES bin DOC "The wrapper that is tried before MPI is looked for")
  if(GBA_MPICC AND NOT CMAKE_CROSSCOMPILING)
    gba_has_mpi_headers(GBA_MPI_HEADERS ${GBA_MPICC})
    if(NOT GBA_MPI_HEADERS)
      set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)
    endif()
  endif()
  find_package(MPI QUIET COMPONENTS C GLOBAL)
endmacro()

# gba_find_other_mpi(make wrapper): the target gba_mpi_MAKE of an MPI that is installed alongside the one of mpicc, by its
# wrapper mpicc.MAKE, as Debian names them, which the cache variable `wrapper` then names. No target if it is not there.
function(gba_find_other_mpi make wrapper)
  find_program(${wrapper} mpicc.${make} DOC "The wrapper of the compiler for the MPI called ${make}")
  if(NOT ${wrapper} OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  gba_has_mpi_headers(has_headers ${${wrapper}})
  execute_process(COMMAND ${${wrapper}} -show RESULT_VARIABLE status OUTPUT_VARIABLE command ERROR_QUIET)
  if(NOT has_headers OR NOT status EQUAL 0)
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${command}")
  add_library(gba_mpi_${make} INTERFACE)
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      target_include_directories(gba_mpi_${make} SYSTEM INTERFACE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L(.+)")
      target_link_directories(gba_mpi_${make} INTERFACE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-l(.+)")
      target_link_libraries(gba_mpi_${make} INTERFACE ${CMAKE_MATCH_1})
    endif()
  endforeach()
endfunction()

# gba_find_mpi_abi(): the target gba_mpi_abi of the binary interface that all makes of MPI-5 have, if it is there, as with
# MPICH 5. Debian has no wrapper of the compiler for it that works.
function(gba_find_mpi_abi)
  find_library(GBA_MPI_ABI_LIBRARY mpi_abi)
  find_path(GBA_MPI_ABI_INCLUDE mpi.h PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/mpi_abi_mpich
    /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/mpi_abi_openmpi PATH_SUFFIXES include NO_DEFAULT_PATH
    DOC "Where the mpi.h of MPI's standard binary interface is")
  mark_as_advanced(GBA_MPI_ABI_LIBRARY GBA_MPI_ABI_INCLUDE)
  if(GBA_MPI_ABI_LIBRARY AND GBA_MPI_ABI_INCLUDE)
    add_library(gba_mpi_abi INTERFACE)
    target_include_directories(gba_mpi_abi SYSTEM INTERFACE ${GBA_MPI_ABI_INCLUDE})
    target_link_libraries(gba_mpi_abi INTERFACE ${GBA_MPI_ABI_LIBRARY})
  endif()
endfunction()

# gba_mpi_version(variable target): "Open MPI 4.1.4" or "MPICH 4.0.2", or "MPI ABI", by the macros of the header; "MPI" for
# one that has other macros.
function(gba_mpi_version variable target)
  get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT folders)
    set(folders)
  endif()
  list(TRANSFORM folders PREPEND -I)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
  if(CMAKE_SYSROOT)
    list(APPEND flags --sysroot=${CMAKE_SYSROOT})
  endif()
  file(WRITE ${PROJECT_BINARY_DIR}/try_mpi.c "#include <mpi.h>\n")
  execute_process(COMMAND ${CMAKE_C_COMPILER} ${flags} ${folders} -dM -E ${PROJECT_BINARY_DIR}/try_mpi.c
    OUTPUT_VARIABLE macros ERROR_QUIET)
  set(numbers)
  foreach(number MAJOR MINOR RELEASE)
    if(macros MATCHES "#define OMPI_${number}_VERSION ([0-9]+)")
      list(APPEND numbers ${CMAKE_MATCH_1})
    endif()
  endforeach()
  set(text MPI)
  if(numbers)
    list(JOIN numbers . numbers)
    set(text "Open MPI ${numbers}")
  elseif(macros MATCHES "#define MPICH_VERSION \"([^\"]+)\"")
    set(text "MPICH ${CMAKE_MATCH_1}")
  elseif(macros MATCHES "#define MPICH_NAME ")
    set(text MPICH)
  elseif(macros MATCHES "#define MPI_ABI_VERSION ")
    set(text "MPI ABI")
  endif()
  set(${variable} ${text} PARENT_SCOPE)
endfunction()
