# SPDX-License-Identifier: Apache-2.0
# Read by cpack for each kind of package.
# The packages of a cross build's libraries are not installed, so dpkg-shlibdeps gets a list.
if(CPACK_GBA_SHLIBS)
  set(ENV{DEB_HOST_ARCH} ${CPACK_DEBIAN_PACKAGE_ARCHITECTURE})
  set(SHLIBDEPS_EXECUTABLE dpkg-shlibdeps -L${CPACK_GBA_SHLIBS})
endif()
# Debian's programs are stripped when their debug information has been put into packages of its own.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_STRIP_FILES ON)
endif()
