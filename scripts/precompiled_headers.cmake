# SPDX-License-Identifier: Apache-2.0
# The standard library's headers take half of the time to compile a source file. They are compiled once for libraries,
# once for programs, once for those that tests start and, with GoogleTest's, once for tests, since a precompiled header
# can only be used with the same compiler options. Every source file still includes what it uses: scripts/lint.sh and the
# package preset have no precompiled headers.

set(standard_headers <algorithm> <array> <atomic> <cerrno> <chrono> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring>
  <fmt/format.h> <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <system_error> <thread>
  <utility> <variant> <vector>)

# precompiled_header(name LIBS ... HEADERS ...): an object library that owns a precompiled header.
function(precompiled_header name)
  cmake_parse_arguments(ARG "" "" "LIBS;HEADERS" ${ARGN})
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/generated/${name}.cpp CONTENT "// Owns a precompiled header.\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  target_link_libraries(${name} PRIVATE gba_warnings Threads::Threads ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

precompiled_header(gba_library_pch HEADERS ${standard_headers})
precompiled_header(gba_program_pch HEADERS ${standard_headers})
set_target_properties(gba_program_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(gba_program_pch PRIVATE -fPIE)
if(GBA_TESTS)
  find_package(GTest REQUIRED)
  precompiled_header(gba_test_pch LIBS gba_test_options GTest::gtest GTest::gmock HEADERS ${standard_headers} <gmock/gmock.h> <gtest/gtest.h>)
  precompiled_header(gba_test_program_pch LIBS gba_test_options HEADERS ${standard_headers})
  set_target_properties(gba_test_pch gba_test_program_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(gba_test_pch PRIVATE -fPIE)
  target_compile_options(gba_test_program_pch PRIVATE -fPIE)
endif()

# The precompiled header that a target can use, or "".
function(precompiled_header_of target result)
  get_target_property(type ${target} TYPE)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  get_target_property(sources ${target} SOURCES)
  set(${result} "" PARENT_SCOPE)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  # Options of the whole build, such as sanitizers, are those of the precompiled headers too.
  get_target_property(options ${target} COMPILE_OPTIONS)
  get_target_property(computes ${target} GBA_COMPUTES)
  get_directory_property(common_options DIRECTORY ${PROJECT_SOURCE_DIR} COMPILE_OPTIONS)
  list(REMOVE_ITEM options ${common_options})
  if(NOT sources OR NOT libraries OR target MATCHES "_pch$" OR options MATCHES "-O|-fsanitize|-fno-pie" OR computes)
    return()
  endif()
  if("gba_test_options" IN_LIST libraries)
    if(type STREQUAL EXECUTABLE AND "gba_test_main" IN_LIST libraries)
      set(${result} gba_test_pch PARENT_SCOPE)
    elseif(type STREQUAL EXECUTABLE)
      set(${result} gba_test_program_pch PARENT_SCOPE)
    endif()
  elseif(type STREQUAL EXECUTABLE)
    set(${result} gba_program_pch PARENT_SCOPE)
  elseif(type MATCHES "LIBRARY" AND NOT type STREQUAL INTERFACE_LIBRARY)
    set(${result} gba_library_pch PARENT_SCOPE)
  endif()
endfunction()

function(use_precompiled_headers folder)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(sub IN LISTS folders)
    use_precompiled_headers(${sub})
  endforeach()
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    precompiled_header_of(${target} header)
    if(header)
      target_precompile_headers(${target} REUSE_FROM ${header})
    endif()
  endforeach()
endfunction()
use_precompiled_headers(${PROJECT_SOURCE_DIR})
