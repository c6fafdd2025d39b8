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
