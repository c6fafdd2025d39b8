# SPDX-License-Identifier: Apache-2.0
# Installs what belongs to no single part: documents, with the folders that their links expect, examples for
# administrators, and a module file.
include(GNUInstallDirs)
set(documents ${CMAKE_INSTALL_DATADIR}/doc/libshmem)
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/docs/*.svg)
gba_install(FILES ${pages} DESTINATION ${documents}/docs COMPONENT libshmem-doc)
foreach(name uapi/README.md openmpi/README.md openmpi/scoll/README.md tests/README.md tests/model/README.md)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${name})
    cmake_path(GET name PARENT_PATH folder)
    gba_install(FILES ${PROJECT_SOURCE_DIR}/${name} DESTINATION ${documents}/${folder} COMPONENT libshmem-doc)
  endif()
endforeach()
foreach(name README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE NOTICE packaging/debian/copyright)
  gba_install(FILES ${PROJECT_SOURCE_DIR}/${name} DESTINATION ${documents} COMPONENT libshmem-doc)
endforeach()
gba_install(DIRECTORY ${PROJECT_SOURCE_DIR}/packaging/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gba-tools/examples
  USE_SOURCE_PERMISSIONS COMPONENT gba-tools)

gba_install(DIRECTORY ${PROJECT_SOURCE_DIR}/packaging/monitoring ${PROJECT_SOURCE_DIR}/packaging/systemd DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libshmem-tools/examples
  COMPONENT libshmem-tools)

# The folders of libshmem, relative to the prefix.
foreach(name bindir includedir libdir mandir)
  get_directory_property(${name} DIRECTORY ${PROJECT_SOURCE_DIR}/shmem DEFINITION ${name})
  string(TOUPPER MODULE_${name} variable)
  set(${variable} ${${name}})
endforeach()
set(modules ${CMAKE_INSTALL_DATADIR}/modulefiles/libshmem)
from_to(MODULE_TO_PREFIX ${modules} .)
configure_file(${PROJECT_SOURCE_DIR}/packaging/modulefile/libshmem.in ${PROJECT_BINARY_DIR}/packaging/${PROJECT_VERSION} @ONLY)
gba_install(FILES ${PROJECT_BINARY_DIR}/packaging/${PROJECT_VERSION} DESTINATION ${modules} COMPONENT libshmem-dev)
