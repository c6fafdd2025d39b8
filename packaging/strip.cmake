# SPDX-License-Identifier: Apache-2.0
# Read by cpack for each kind of package. Debian's programs are stripped when their debug information has been put into
# packages of its own.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_STRIP_FILES ON)
endif()
