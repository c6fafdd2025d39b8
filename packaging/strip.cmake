# SPDX-License-Identifier: Apache-2.0
# Read by cpack for each kind of package.
if(CPACK_GBA_CONFLICTS AND CPACK_GENERATOR MATCHES "^(DEB|RPM)$")
  message(FATAL_ERROR "These packages would conflict with Debian's openmpi-bin, or name other folders than they are installed to: "
    "${CPACK_GBA_CONFLICTS}. Make packages by scripts/package.sh, or in a folder that the preset package has configured.")
endif()
# The synopsis of a Debian package is the first line of its own description, not that of all packages.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
endif()
# The packages of a cross build's libraries are not installed, so dpkg-shlibdeps gets a list.
if(CPACK_GBA_SHLIBS)
  set(ENV{DEB_HOST_ARCH} ${CPACK_DEBIAN_PACKAGE_ARCHITECTURE})
  set(SHLIBDEPS_EXECUTABLE dpkg-shlibdeps -L${CPACK_GBA_SHLIBS})
endif()
# Debian's programs are stripped when their debug information has been put into packages of its own.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_STRIP_FILES ON)
endif()
