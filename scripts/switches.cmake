# SPDX-License-Identifier: Apache-2.0
# Parts that are built if what they need is installed, and that can be demanded or left out.

# gba_switch(NAME text): the cache variable NAME, which is ON, OFF or, by default, AUTO. The text begins with the part's
# name in the table of parts, up to ", which".
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
  string(REGEX REPLACE ", which .*" "" part "${text}")
  set_property(GLOBAL APPEND PROPERTY GBA_SWITCHES ${name})
  set_property(GLOBAL PROPERTY GBA_PART_${name} "${part}")
endfunction()

# gba_not_built(NAME what reason): ends the configuration if NAME is ON, else notes that a part is not built, and why.
function(gba_not_built name what reason)
  if("${${name}}" STREQUAL "ON")
    message(FATAL_ERROR "${name} is ON, but ${what} cannot be built: ${reason}. Install that, or set ${name} to AUTO or OFF.")
  elseif("${${name}}" STREQUAL "OFF")
    set(reason "${name} is OFF")
  endif()
  set_property(GLOBAL PROPERTY GBA_LEFT_OUT_${name} "${reason}")
endfunction()

# gba_show_parts(header): prints the table of parts, at the end of the configuration, and writes it to a header, from which
# shmem_info --build prints the same.
function(gba_show_parts header)
  get_property(switches GLOBAL PROPERTY GBA_SWITCHES)
  set(text "// Written by gba_show_parts (scripts/switches.cmake).\n#pragma once\n\n#include <array>\n\nnamespace shmem {\n
/// A part that has a switch: its switch, its name, and why it is left out, or \"\".
struct BuildPart {
  const char* name;
  const char* title;
  const char* left_out;
};\n")
  list(LENGTH switches count)
  string(APPEND text "inline constexpr std::array<BuildPart, ${count}> kBuildParts{{\n")
  set(missing)
  message(STATUS "Parts of this build, besides libgba, libshmem and their programs:")
  foreach(name IN LISTS switches)
    get_property(part GLOBAL PROPERTY GBA_PART_${name})
    get_property(left_out GLOBAL PROPERTY GBA_LEFT_OUT_${name})
    string(APPEND text "    {\"${name}\", \"${part}\", R\"why(${left_out})why\"},\n")
    set(state "built")
    if(left_out)
      set(state "left out: ${left_out}")
      if(NOT left_out STREQUAL "${name} is OFF")
        set(missing ON)
      endif()
    endif()
    string(LENGTH "${part}" length)
    math(EXPR length "48 - ${length}")
    string(REPEAT " " ${length} space)
    message(STATUS "  ${part}${space}${state}")
  endforeach()
  if(missing)
    message(STATUS "To add a part, install its packages and run cmake again; scripts/install-deps.sh has groups of them")
  endif()
  file(CONFIGURE OUTPUT ${header} CONTENT "${text}}};\n\n}  // namespace shmem\n" @ONLY)
endfunction()

# install(), if this project is installed.
function(gba_install)
  if(GBA_INSTALL)
    install(${ARGN})
  endif()
endfunction()
