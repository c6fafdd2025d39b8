# SPDX-License-Identifier: Apache-2.0
# cpack -G DEB: one package per install component. scripts/package.sh builds them.
set(CPACK_PACKAGE_NAME gba)
set(CPACK_PACKAGE_VENDOR "libgba developers")
set(CPACK_PACKAGE_CONTACT "libgba developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/finish.cmake)

set(CPACK_COMPONENTS_ALL libgba libgba-dev gba-tools gba-fake-device libshmem libshmem-dev)
if(TARGET mca_coll_gba)
  list(APPEND CPACK_COMPONENTS_ALL libgba-openmpi)
endif()
if(TARGET shmem_bootstrap_mpi)
  list(APPEND CPACK_COMPONENTS_ALL libshmem-mpi)
endif()
if(TARGET shmem_kv_core)
  list(APPEND CPACK_COMPONENTS_ALL python3-shmem-kv)
endif()
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# Before libgba is installed, dpkg-shlibdeps finds it in the build folder.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(control ${PROJECT_SOURCE_DIR}/packaging/debian)

set(CPACK_COMPONENT_LIBGBA_DESCRIPTION "Barriers in a switch, from user space
 The driver of the Global Barrier Accelerator, with its device rules.")
set(CPACK_DEBIAN_LIBGBA_PACKAGE_NAME libgba)
set(CPACK_DEBIAN_LIBGBA_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBGBA_PACKAGE_CONTROL_EXTRA ${control}/libgba/postinst ${control}/triggers)

set(CPACK_COMPONENT_LIBGBA-DEV_DESCRIPTION "Barriers in a switch, from user space: headers
 For programs that are built with libgba, by pkg-config gba or
 find_package(gba).")
set(CPACK_DEBIAN_LIBGBA-DEV_PACKAGE_NAME libgba-dev)
set(CPACK_DEBIAN_LIBGBA-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBGBA-DEV_PACKAGE_DEPENDS "libgba (= ${PROJECT_VERSION})")

set(CPACK_COMPONENT_GBA-TOOLS_DESCRIPTION "Barriers in a switch, from user space: the gba command
 Lists, checks, tests, measures and resets Global Barrier Accelerators.")
set(CPACK_DEBIAN_GBA-TOOLS_PACKAGE_NAME gba-tools)
set(CPACK_DEBIAN_GBA-TOOLS_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_GBA-TOOLS_PACKAGE_DEPENDS "libgba (= ${PROJECT_VERSION})")

set(CPACK_COMPONENT_GBA-FAKE-DEVICE_DESCRIPTION "A Global Barrier Accelerator as a process
 For development without the hardware: the same device behind a
 vfio-user socket.")
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_NAME gba-fake-device)
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_RECOMMENDS libgba)
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_CONTROL_EXTRA ${control}/gba-fake-device/postinst
  ${control}/gba-fake-device/postrm)

set(CPACK_COMPONENT_LIBGBA-OPENMPI_DESCRIPTION "Barriers in a switch, from user space: in programs of Open MPI
 Components for Open MPI that let the Global Barrier Accelerator do a program's
 barriers, if mca_base_component_path names their folder.")
set(CPACK_DEBIAN_LIBGBA-OPENMPI_PACKAGE_NAME libgba-openmpi)
set(CPACK_DEBIAN_LIBGBA-OPENMPI_PACKAGE_SECTION libs)
if(TARGET mca_coll_gba)
  # The components use internal structs of one release series.
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" series ${GBA_OPENMPI_VERSION})
  math(EXPR next_minor "${CMAKE_MATCH_2} + 1")
  set(CPACK_DEBIAN_LIBGBA-OPENMPI_PACKAGE_DEPENDS "libgba (= ${PROJECT_VERSION}), \
libopenmpi3 (>= ${GBA_OPENMPI_VERSION}), libopenmpi3 (<< ${CMAKE_MATCH_1}.${next_minor})")
endif()
set(CPACK_DEBIAN_LIBGBA-OPENMPI_PACKAGE_SUGGESTS "gba-fake-device, gba-tools, openmpi-bin")

# Debian's Open MPI has commands and headers of the same names: see SHMEM_OWN_FOLDERS. Its library is liboshmem.
set(CPACK_COMPONENT_LIBSHMEM_DESCRIPTION "OpenSHMEM 1.6 for one node or several
 Symmetric memory, one-sided communication and collective operations, with
 barriers in a switch if there is a Global Barrier Accelerator. Start programs
 by oshrun.libshmem, mpirun or srun.")
set(CPACK_DEBIAN_LIBSHMEM_PACKAGE_NAME libshmem)
set(CPACK_DEBIAN_LIBSHMEM_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBSHMEM_PACKAGE_DEPENDS "libgba (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBSHMEM_PACKAGE_SUGGESTS "gba-fake-device, gba-tools, libpmix2, libshmem-mpi, libucx0")
set(CPACK_DEBIAN_LIBSHMEM_PACKAGE_CONTROL_EXTRA ${control}/triggers)

set(CPACK_COMPONENT_LIBSHMEM-DEV_DESCRIPTION "OpenSHMEM 1.6 for one node or several: headers and compiler wrappers
 For programs that are built with libshmem, by oshcc.libshmem and
 oshc++.libshmem, pkg-config shmem, or find_package(shmem).")
set(CPACK_DEBIAN_LIBSHMEM-DEV_PACKAGE_NAME libshmem-dev)
set(CPACK_DEBIAN_LIBSHMEM-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBSHMEM-DEV_PACKAGE_DEPENDS "libshmem (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBSHMEM-DEV_PACKAGE_RECOMMENDS "gcc | c-compiler, g++ | c++-compiler")

set(CPACK_COMPONENT_LIBSHMEM-MPI_DESCRIPTION "OpenSHMEM 1.6 for one node or several: in programs of Open MPI
 Lets the processes of an MPI program be PEs as well
 (SHMEMX_INIT_WITH_MPI, SHMEM_BOOTSTRAP=mpi).")
set(CPACK_DEBIAN_LIBSHMEM-MPI_PACKAGE_NAME libshmem-mpi)
set(CPACK_DEBIAN_LIBSHMEM-MPI_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBSHMEM-MPI_PACKAGE_DEPENDS "libshmem (= ${PROJECT_VERSION})")

set(CPACK_COMPONENT_PYTHON3-SHMEM-KV_DESCRIPTION "KV caches in symmetric memory, and kv_shuffle, for Python
 NumPy arrays that the processes of a job share, and the calls that move blocks
 of KV caches between them.")
set(CPACK_DEBIAN_PYTHON3-SHMEM-KV_PACKAGE_NAME python3-shmem-kv)
set(CPACK_DEBIAN_PYTHON3-SHMEM-KV_PACKAGE_SECTION python)
# The module works with one version of Python: that of Debian 12.
set(CPACK_DEBIAN_PYTHON3-SHMEM-KV_PACKAGE_DEPENDS
  "libshmem (= ${PROJECT_VERSION}), python3 (>= 3.11), python3 (<< 3.12), python3-numpy")
set(CPACK_DEBIAN_PYTHON3-SHMEM-KV_PACKAGE_CONTROL_EXTRA
  ${control}/python3-shmem-kv/postinst ${control}/python3-shmem-kv/prerm)

include(CPack)
