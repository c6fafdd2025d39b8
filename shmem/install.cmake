# SPDX-License-Identifier: Apache-2.0
# Installs libshmem, with oshcc, shmem.pc and find_package(shmem) by which other projects find it; these also work in
# the build tree without an installation.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(install_manuals.cmake)

# Debian's Open MPI has /usr/bin/oshcc and /usr/bin/oshrun. Alongside it our commands have their own folder for PATH, by
# which man and bash-completion find their files, and names with a suffix in /usr/bin.
option(SHMEM_OWN_FOLDERS "Install oshcc, oshrun and headers into folders of libshmem's own, alongside another OpenSHMEM" OFF)
set(libdir ${CMAKE_INSTALL_LIBDIR})
if(SHMEM_OWN_FOLDERS)
  set(includedir ${CMAKE_INSTALL_INCLUDEDIR}/libshmem)
  set(bindir ${libdir}/libshmem/bin)
  set(datadir ${libdir}/libshmem/share)
  set(mandir ${datadir}/man)
else()
  set(includedir ${CMAKE_INSTALL_INCLUDEDIR})
  set(bindir ${CMAKE_INSTALL_BINDIR})
  set(datadir ${CMAKE_INSTALL_DATADIR})
  set(mandir ${CMAKE_INSTALL_MANDIR})
endif()

set(SHMEM_INSTALL_INCLUDEDIR ${includedir} PARENT_SCOPE)

# from_to(variable from to): the relative path between two installed folders, so that the tree can be moved.
function(from_to variable from to)
  cmake_path(ABSOLUTE_PATH from BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
  cmake_path(ABSOLUTE_PATH to BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
  file(RELATIVE_PATH way ${from} ${to})
  set(${variable} ${way} PARENT_SCOPE)
endfunction()

# The libraries. The plug-ins for MPI programs are loaded on request, from a folder where only libshmem looks.
gba_install(TARGETS shmem kvexchange EXPORT shmem-targets
  LIBRARY DESTINATION ${libdir} COMPONENT libshmem NAMELINK_COMPONENT libshmem-dev
  INCLUDES DESTINATION ${includedir})
# Where libshmem finds libgba and libkvexchange: next to it, also if the tree has been moved; from its folder with other names; and where
# it is installed, if it is linked by a name in any other folder. In /usr the last is where everything is looked for.
# The same in the build tree: CMake would fill up a shorter one with colons, which mean the working folder.
set(rpath_of_library "$ORIGIN;$ORIGIN/..")
if(NOT SHMEM_OWN_FOLDERS)
  list(APPEND rpath_of_library ${CMAKE_INSTALL_FULL_LIBDIR})
endif()
set_target_properties(shmem kvexchange PROPERTIES INSTALL_RPATH "${rpath_of_library}")
gba_install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libsma.so DESTINATION ${libdir} COMPONENT libshmem-dev)
foreach(name sma oshmem)
  gba_install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libshmem/lib${name}.so DESTINATION ${libdir}/libshmem COMPONENT libshmem-dev)
endforeach()
foreach(make IN LISTS SHMEM_MPI_MAKES)
  set(component libshmem-mpi)
  if(make STREQUAL "mpich")
    set(component libshmem-mpich)
  elseif(make STREQUAL "abi")
    set(component libshmem-mpi-abi)
  endif()
  gba_install(TARGETS shmem_bootstrap_${make} LIBRARY DESTINATION ${libdir}/libshmem COMPONENT ${component})
endforeach()
gba_install(DIRECTORY include/ DESTINATION ${includedir} COMPONENT libshmem-dev FILES_MATCHING PATTERN "*.h")

# The commands. Those that load libshmem also find it after the whole tree has been moved; in /usr they need no rpath.
if(SHMEM_OWN_FOLDERS)
  set(rpath_of_programs "")
else()
  from_to(way ${CMAKE_INSTALL_BINDIR} ${libdir})
  set(rpath_of_programs "$ORIGIN/${way}")
endif()
# oshrun does not load libshmem, but libsodium, which is next to it in a wheel.
set_target_properties(oshrun PROPERTIES INSTALL_RPATH "${rpath_of_programs}" BUILD_WITH_INSTALL_RPATH ON)
gba_install(TARGETS oshrun EXPORT shmem-targets RUNTIME DESTINATION ${bindir} COMPONENT libshmem-tools)
# oshrun --profile preloads it.
from_to(way ${bindir} ${libdir}/libshmem)
target_compile_definitions(shmem_launcher PRIVATE SHMEM_PROFILE_WAY="${way}")
set_target_properties(shmem_profile PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/..")
gba_install(TARGETS shmem_profile LIBRARY DESTINATION ${libdir}/libshmem COMPONENT libshmem-tools)
gba_install(TARGETS shmem_info RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT libshmem-tools)
gba_install(FILES launcher/oshrun.bash DESTINATION ${datadir}/bash-completion/completions RENAME oshrun COMPONENT libshmem-tools)
from_to(to_include ${bindir} ${includedir})
from_to(to_lib ${bindir} ${libdir})
set(staged ${CMAKE_CURRENT_BINARY_DIR}/install)
compiler_wrappers(${staged} "$here/${to_include}" "$here/${to_lib}")
set(wrappers oshcc oshc++ oshCC oshcxx)
list(TRANSFORM wrappers PREPEND ${staged}/ OUTPUT_VARIABLE wrapper_files)
gba_install(PROGRAMS ${wrapper_files} DESTINATION ${bindir} COMPONENT libshmem-dev)

# The manuals of the commands; those of the routines are in docs/man.
gba_install_manuals(libshmem-tools ${mandir}/man1 launcher/oshrun.1)
gba_install_manuals(libshmem-tools ${CMAKE_INSTALL_MANDIR}/man1 info/shmem_info.1)
foreach(other oshc++ oshCC oshcxx)
  file(CREATE_LINK oshcc.1 ${staged}/${other}.1 SYMBOLIC)
  gba_install(FILES ${staged}/${other}.1 DESTINATION ${mandir}/man1 COMPONENT libshmem-dev)
endforeach()
gba_install_manuals(libshmem-dev ${mandir}/man1 launcher/oshcc.1)
install_manuals(libshmem-dev)

gba_install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libshmem-dev
  COMPONENT libshmem-dev USE_SOURCE_PERMISSIONS PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE REGEX "examples/run\\.sh$" EXCLUDE)

if(SHMEM_OWN_FOLDERS)
  # other_names(component command): installs command.libshmem and its manual, as links.
  function(other_names component command)
    from_to(way ${CMAKE_INSTALL_BINDIR} ${bindir})
    file(CREATE_LINK ${way}/${command} ${staged}/${command}.libshmem SYMBOLIC)
    gba_install(FILES ${staged}/${command}.libshmem DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
    from_to(way ${CMAKE_INSTALL_MANDIR}/man1 ${mandir}/man1)
    file(CREATE_LINK ${way}/${command}.1 ${staged}/${command}.libshmem.1 SYMBOLIC)
    gba_install(FILES ${staged}/${command}.libshmem.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
  endfunction()
  other_names(libshmem-tools oshrun)
  set(completions bash-completion/completions)
  from_to(way ${CMAKE_INSTALL_DATADIR}/${completions} ${datadir}/${completions})
  file(CREATE_LINK ${way}/oshrun ${staged}/oshrun.completion SYMBOLIC)
  gba_install(FILES ${staged}/oshrun.completion DESTINATION ${CMAKE_INSTALL_DATADIR}/${completions} RENAME oshrun.libshmem
    COMPONENT libshmem-tools)
  foreach(wrapper IN LISTS wrappers)
    other_names(libshmem-dev ${wrapper})
  endforeach()
endif()

# pkg-config and CMake files for the installation ...
from_to(to_prefix ${libdir}/pkgconfig .)
set(SHMEM_PC_PREFIX "\${pcfiledir}/${to_prefix}")
set(SHMEM_PC_LIBDIR "\${prefix}/${libdir}")
set(SHMEM_PC_INCLUDEDIR "\${prefix}/${includedir}")
configure_file(shmem.pc.in ${staged}/shmem.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/kv/exchange/kvexchange.pc.in ${staged}/kvexchange.pc @ONLY)
gba_install(FILES ${staged}/shmem.pc ${staged}/kvexchange.pc DESTINATION ${libdir}/pkgconfig COMPONENT libshmem-dev)
set(package_dir ${libdir}/cmake/shmem)
configure_package_config_file(shmemConfig.cmake.in ${staged}/shmemConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${staged}/shmemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
gba_install(FILES ${staged}/shmemConfig.cmake ${staged}/shmemConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT libshmem-dev)
gba_install(EXPORT shmem-targets NAMESPACE shmem:: FILE shmemTargets.cmake DESTINATION ${package_dir} COMPONENT libshmem-dev)

# ... and for the build tree, as if that were a prefix.
set(SHMEM_PC_PREFIX ${PROJECT_BINARY_DIR})
set(SHMEM_PC_LIBDIR ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(SHMEM_PC_INCLUDEDIR ${SHMEM_BUILD_INCLUDEDIR})
configure_file(shmem.pc.in ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/pkgconfig/shmem.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/kv/exchange/kvexchange.pc.in ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/pkgconfig/kvexchange.pc @ONLY)
set(package_dir ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/cmake/shmem)
configure_package_config_file(shmemConfig.cmake.in ${package_dir}/shmemConfig.cmake
  INSTALL_DESTINATION ${package_dir} INSTALL_PREFIX ${PROJECT_BINARY_DIR})
write_basic_package_version_file(${package_dir}/shmemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
export(TARGETS shmem kvexchange oshrun gba NAMESPACE shmem:: FILE ${package_dir}/shmemTargets.cmake)
