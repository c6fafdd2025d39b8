# SPDX-License-Identifier: Apache-2.0
# Installs libgba, with gba.pc and find_package(gba) by which other projects find it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

gba_install(TARGETS gba EXPORT gba-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libgba NAMELINK_COMPONENT libgba-dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_INCLUDEDIR}/gba)
gba_install(FILES include/gba/barrier.h include/gba/gba.h include/gba/scoll_gba.h include/gba/coll_switch_barrier.h
  ${CMAKE_CURRENT_BINARY_DIR}/include/gba/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gba COMPONENT libgba-dev)
# The numbers of the device's registers, errors and states.
gba_install(FILES ${PROJECT_SOURCE_DIR}/uapi/gba_device.h ${PROJECT_SOURCE_DIR}/uapi/gba_regs.h
  ${PROJECT_SOURCE_DIR}/uapi/gba_switch_regs.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gba/uapi COMPONENT libgba-dev)

# Relative, so that the tree can be moved.
file(RELATIVE_PATH GBA_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(gba.pc.in gba.pc @ONLY)
gba_install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gba.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libgba-dev)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gba)
configure_package_config_file(gbaConfig.cmake.in gbaConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(gbaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
gba_install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gbaConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/gbaConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT libgba-dev)
gba_install(EXPORT gba-targets NAMESPACE gba:: FILE gbaTargets.cmake DESTINATION ${package_dir} COMPONENT libgba-dev)
