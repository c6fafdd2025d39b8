# SPDX-License-Identifier: Apache-2.0
# cpack -G DEB and cpack -G RPM: one package per install component. scripts/package.sh builds them.
set(GBA_PACKAGE_CONTACT "libgba developers <root@localhost>" CACHE STRING "Name and address of the one who makes packages")
set(CPACK_PACKAGE_NAME gba)
set(CPACK_PACKAGE_VENDOR "libgba developers")
set(CPACK_PACKAGE_CONTACT ${GBA_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/strip.cmake)
# Debian's Open MPI has files of the same names, which SHMEM_OWN_FOLDERS avoids; units and module files name the prefix.
set(CPACK_GBA_CONFLICTS)
if(NOT SHMEM_OWN_FOLDERS OR NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(CPACK_GBA_CONFLICTS "SHMEM_OWN_FOLDERS is '${SHMEM_OWN_FOLDERS}' and the prefix is ${CMAKE_INSTALL_PREFIX}")
endif()
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/finish.cmake)

set(CPACK_COMPONENTS_ALL libgba libgba-dev gba-udev gba-tools gba-fake-device libshmem libshmem-tools libshmem-dev libshmem-doc)
if(TARGET mca_coll_gba)
  list(APPEND CPACK_COMPONENTS_ALL libgba-openmpi)
endif()
if(TARGET shmem_bootstrap_openmpi OR TARGET shmem_bootstrap_mpi)
  list(APPEND CPACK_COMPONENTS_ALL libshmem-mpi)
endif()
if(TARGET shmem_bootstrap_mpich)
  list(APPEND CPACK_COMPONENTS_ALL libshmem-mpich)
endif()
if(TARGET shmem_bootstrap_abi)
  list(APPEND CPACK_COMPONENTS_ALL libshmem-mpi-abi)
endif()
if(TARGET shmem_kv_core)
  list(APPEND CPACK_COMPONENTS_ALL python3-shmem-kv)
endif()
if(TARGET shmem_torch_core)
  list(APPEND CPACK_COMPONENTS_ALL python3-shmem-torch)
endif()
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
# Before libgba is installed, dpkg-shlibdeps finds it in the build folder.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
if(CMAKE_CROSSCOMPILING)
  # Tools for that architecture, its libraries, and which packages these are in.
  set(CPACK_OBJCOPY_EXECUTABLE ${CMAKE_OBJCOPY})
  set(CPACK_READELF_EXECUTABLE ${CMAKE_READELF})
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}
    ${CMAKE_SYSROOT}/lib/${CMAKE_LIBRARY_ARCHITECTURE})
  set(CPACK_GBA_SHLIBS ${CMAKE_SYSROOT}/.shlibs)
endif()
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_AUTOREQ ON)
# Folders that belong to other packages.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/lib/systemd /usr/lib/systemd/system /usr/lib/udev /usr/lib/udev/rules.d
  /usr/lib/sysusers.d /usr/lib/tmpfiles.d /usr/lib/python3 /usr/lib/python3/dist-packages /usr/lib/python3/site-packages /usr/share/bash-completion
  /usr/share/bash-completion/completions /usr/share/man /usr/share/man/man1 /usr/share/man/man3 /usr/share/man/man7 /usr/share/modulefiles /usr/share/licenses /usr/lib64/pkgconfig /usr/lib64/cmake)

# gba_package(component name section summary text): both kinds of package. Those with headers end in -dev, and for RPM in
# -devel.
macro(gba_package component name section summary text)
  string(TOUPPER ${component} key)
  string(REGEX REPLACE "-dev$" "-devel" rpm_name ${name})
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${summary}\n ${text}")
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section})
  set(CPACK_RPM_${key}_PACKAGE_NAME ${rpm_name})
  set(CPACK_RPM_${key}_PACKAGE_SUMMARY ${summary})
endmacro()

# gba_depends(component package...): on packages of the same version; those of others follow in Debian's names.
macro(gba_depends component)
  string(TOUPPER ${component} key)
  set(names ${ARGN})
  list(TRANSFORM names APPEND " (= ${PROJECT_VERSION})" OUTPUT_VARIABLE dependencies)
  list(JOIN dependencies ", " CPACK_DEBIAN_${key}_PACKAGE_DEPENDS)
  list(TRANSFORM names APPEND " = ${PROJECT_VERSION}" OUTPUT_VARIABLE dependencies)
  list(JOIN dependencies ", " CPACK_RPM_${key}_PACKAGE_REQUIRES)
endmacro()

# gba_licences(name licence...): of headers that are compiled into the package of this RPM name, and of libpci, besides
# Apache-2.0.
set(licences)
macro(gba_licences name)
  string(REPLACE ";" " AND " others "${ARGN}")
  string(APPEND licences "['${name}'] = 'Apache-2.0 AND ${others}', ")
endmacro()

# gba_replaces(component package): a package of an earlier release, which had the files of this one.
macro(gba_replaces component package)
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_BREAKS ${package})
  set(CPACK_DEBIAN_${key}_PACKAGE_REPLACES ${package})
  set(CPACK_RPM_${key}_PACKAGE_OBSOLETES ${package})
endmacro()

# gba_scripts(component folder [file...]): the maintainer scripts in the folder, and other files of control.tar.
macro(gba_scripts component folder)
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA ${ARGN})
  foreach(pair postinst:POST_INSTALL prerm:PRE_UNINSTALL postrm:POST_UNINSTALL)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 script)
    if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/debian/${folder}/${script})
      list(APPEND CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/${folder}/${script})
    endif()
    if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/rpm/${folder}/${script})
      list(GET pair 1 when)
      set(CPACK_RPM_${key}_${when}_SCRIPT_FILE ${CMAKE_CURRENT_LIST_DIR}/rpm/${folder}/${script})
    endif()
  endforeach()
endmacro()

# Libraries have the number of their binary interface in their packages' names, so that two of them can be installed.
get_target_property(interface gba SOVERSION)
set(libgba libgba${interface})
get_target_property(interface shmem SOVERSION)
set(libshmem libshmem${interface})
set(triggers ${CMAKE_CURRENT_LIST_DIR}/debian/triggers)

gba_package(libgba ${libgba} libs "Barriers in a switch, from user space"
  "The driver of the Global Barrier Accelerator.")
set(CPACK_DEBIAN_LIBGBA_PACKAGE_RECOMMENDS "gba-udev (= ${PROJECT_VERSION})")
gba_licences(${libgba} MIT)
gba_replaces(libgba libgba)
gba_scripts(libgba libraries ${triggers})

gba_package(gba-udev gba-udev admin "Barriers in a switch, from user space: names and rights of devices"
  "Udev rules that name Global Barrier Accelerators, give them to vfio-pci, and
 let group gba use them.")
set(CPACK_DEBIAN_GBA-UDEV_PACKAGE_ARCHITECTURE all)
set(CPACK_RPM_GBA-UDEV_PACKAGE_ARCHITECTURE noarch)
set(CPACK_DEBIAN_GBA-UDEV_PACKAGE_DEPENDS passwd)
set(CPACK_RPM_GBA-UDEV_PACKAGE_REQUIRES shadow-utils)
gba_replaces(gba-udev libgba)
gba_scripts(gba-udev gba-udev)

gba_package(libgba-dev libgba-dev libdevel "Barriers in a switch, from user space: headers"
  "For programs that are built with libgba, by pkg-config gba or
 find_package(gba).")
gba_depends(libgba-dev ${libgba})

gba_package(gba-tools gba-tools admin "Barriers in a switch, from user space: the gba command"
  "Lists, checks, tests, measures and resets Global Barrier Accelerators.")
gba_depends(gba-tools ${libgba})
gba_licences(gba-tools BSD-3-Clause GPL-2.0-or-later MIT)
set(CPACK_DEBIAN_GBA-TOOLS_PACKAGE_RECOMMENDS "gba-udev (= ${PROJECT_VERSION})")

gba_package(gba-fake-device gba-fake-device devel "A Global Barrier Accelerator as a process"
  "For development without the hardware: the same device behind a
 vfio-user socket.")
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_DEPENDS passwd)
set(CPACK_RPM_GBA-FAKE-DEVICE_PACKAGE_REQUIRES shadow-utils)
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_RECOMMENDS ${libgba})
gba_licences(gba-fake-device BSD-3-Clause MIT)
gba_scripts(gba-fake-device gba-fake-device)

gba_package(libgba-openmpi libgba-openmpi libs "Barriers in a switch, from user space: in programs of Open MPI"
  "Components for Open MPI that let the Global Barrier Accelerator do a program's
 barriers, if mca_base_component_path names their folder.")
gba_depends(libgba-openmpi ${libgba})
if(TARGET mca_coll_gba)
  # The components use internal structs of one release series.
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" series ${GBA_OPENMPI_VERSION})
  math(EXPR next_minor "${CMAKE_MATCH_2} + 1")
  # Debian's packages are named after the library's number.
  set(openmpi_package libopenmpi3)
  if(GBA_OPENMPI_VERSION VERSION_GREATER_EQUAL 5)
    set(openmpi_package libopenmpi40)
  endif()
  string(APPEND CPACK_DEBIAN_LIBGBA-OPENMPI_PACKAGE_DEPENDS
    ", ${openmpi_package} (>= ${GBA_OPENMPI_VERSION}), ${openmpi_package} (<< ${CMAKE_MATCH_1}.${next_minor})")
endif()
set(CPACK_DEBIAN_LIBGBA-OPENMPI_PACKAGE_SUGGESTS "gba-fake-device, gba-tools, openmpi-bin")

# Debian's Open MPI has commands and headers of the same names: see SHMEM_OWN_FOLDERS. Its library is liboshmem.
gba_package(libshmem ${libshmem} libs "OpenSHMEM 1.6 for one node or several"
  "Symmetric memory, one-sided communication and collective operations, with
 barriers in a switch if there is a Global Barrier Accelerator. libkvexchange,
 for programs that only share blocks by key.")
gba_depends(libshmem ${libgba})
gba_licences(${libshmem} BSD-2-Clause MIT bzip2-1.0.6)
# Loaded when they are needed, by the soname: for jobs on several nodes, for mpirun and srun, and for metrics.
set(CPACK_DEBIAN_LIBSHMEM_PACKAGE_RECOMMENDS "libshmem-tools (= ${PROJECT_VERSION}), libpmix2t64 | libpmix2, libucx0")
set(CPACK_DEBIAN_LIBSHMEM_PACKAGE_SUGGESTS
  "gba-fake-device, gba-tools, libmicrohttpd12t64 | libmicrohttpd12, libshmem-doc, libshmem-mpi, libshmem-mpich, libshmem-mpi-abi")
gba_replaces(libshmem libshmem)
gba_scripts(libshmem libraries ${triggers})

gba_package(libshmem-tools libshmem-tools utils "OpenSHMEM 1.6 for one node or several: programs"
  "oshrun.libshmem starts, profiles and debugs programs, shmem_info shows what
 they use, shmem_perf measures calls on a node or between nodes, tune_barrier
 and tune_collective find what is fast on a machine, kv_shuffle moves KV caches
 of LLM serving, and kv_exchange shares blocks of them by key.")
gba_depends(libshmem-tools ${libshmem} ${libgba})
gba_licences(libshmem-tools BSD-3-Clause MIT bzip2-1.0.6)
gba_replaces(libshmem-tools libshmem)
set(CPACK_RPM_LIBSHMEM-TOOLS_PACKAGE_OBSOLETES "")

gba_package(libshmem-dev libshmem-dev libdevel "OpenSHMEM 1.6 for one node or several: headers and compiler wrappers"
  "For programs that are built with libshmem, by oshcc.libshmem and
 oshc++.libshmem, pkg-config shmem, or find_package(shmem); and with
 libkvexchange.")
gba_depends(libshmem-dev ${libshmem} libshmem-tools)
set(CPACK_DEBIAN_LIBSHMEM-DEV_PACKAGE_RECOMMENDS "gcc | c-compiler, g++ | c++-compiler")
set(CPACK_DEBIAN_LIBSHMEM-DEV_PACKAGE_SUGGESTS "libshmem-doc")

gba_package(libshmem-doc libshmem-doc doc "OpenSHMEM 1.6 for one node or several: documents"
  "How to start jobs, set variables, deploy and tune libshmem and libgba, and the
 protocol of the device.")
set(CPACK_DEBIAN_LIBSHMEM-DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_RPM_LIBSHMEM-DOC_PACKAGE_ARCHITECTURE noarch)

gba_package(libshmem-mpi libshmem-mpi libs "OpenSHMEM 1.6 for one node or several: in programs of Open MPI"
  "Lets the processes of an MPI program be PEs as well
 (SHMEMX_INIT_WITH_MPI, SHMEM_BOOTSTRAP=mpi).")
gba_depends(libshmem-mpi ${libshmem})

gba_package(libshmem-mpich libshmem-mpich libs "OpenSHMEM 1.6 for one node or several: in programs of MPICH"
  "Lets the processes of a program of MPICH be PEs as well
 (SHMEMX_INIT_WITH_MPI, SHMEM_BOOTSTRAP=mpi).")
gba_depends(libshmem-mpich ${libshmem})

gba_package(libshmem-mpi-abi libshmem-mpi-abi libs "OpenSHMEM 1.6 for one node or several: in programs of any MPI-5"
  "Lets the processes of a program that is linked with libmpi_abi, the binary
 interface of MPI-5, be PEs as well (SHMEMX_INIT_WITH_MPI,
 SHMEM_BOOTSTRAP=mpi).")
gba_depends(libshmem-mpi-abi ${libshmem})

gba_package(python3-shmem-kv python3-shmem-kv python "KV caches in symmetric memory, kv_shuffle, and exchanges, for Python"
  "NumPy arrays that the processes of a job share, the calls that move blocks of
 KV caches between them, and exchanges, in which independent processes share
 blocks by key, with adapters for vLLM, SGLang and LMCache; and the module
 shmem, with the calls of Ascend SHMEM's Python package.")
gba_depends(python3-shmem-kv ${libshmem} libshmem-tools)
gba_licences(python3-shmem-kv BSD-3-Clause)
if(TARGET shmem_kv_core)
  # The module works with the version of Python that it was built for.
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" series ${SHMEM_PYTHON_VERSION})
  math(EXPR next_minor "${CMAKE_MATCH_2} + 1")
  string(APPEND CPACK_DEBIAN_PYTHON3-SHMEM-KV_PACKAGE_DEPENDS
    ", python3 (>= ${series}), python3 (<< ${CMAKE_MATCH_1}.${next_minor}), python3-numpy")
  string(APPEND CPACK_RPM_PYTHON3-SHMEM-KV_PACKAGE_REQUIRES ", python3 >= ${series}, python3 < ${CMAKE_MATCH_1}.${next_minor}, python3-numpy")
endif()
gba_scripts(python3-shmem-kv python3-shmem-kv)

# It works with the version of PyTorch that it was built for, whose libraries have that version in their names.
gba_package(python3-shmem-torch python3-shmem-torch python "OpenSHMEM 1.6 for one node or several: backend of torch.distributed"
  "Lets processes that use torch.distributed communicate through symmetric
 memory.")
gba_depends(python3-shmem-torch python3-shmem-kv ${libshmem})
gba_licences(python3-shmem-torch BSD-3-Clause)
string(APPEND CPACK_DEBIAN_PYTHON3-SHMEM-TORCH_PACKAGE_DEPENDS ", python3-torch")
string(APPEND CPACK_RPM_PYTHON3-SHMEM-TORCH_PACKAGE_REQUIRES ", python3-torch")
gba_scripts(python3-shmem-torch python3-shmem-torch)

# CPack has one licence for all packages: this is a macro of RPM, in the language Lua.
set(CPACK_RPM_PACKAGE_LICENSE "%{lua: local licences = { ${licences}} print(licences[rpm.expand('%{name}')] or 'Apache-2.0')}")

include(CPack)
