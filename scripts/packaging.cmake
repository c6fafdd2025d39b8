# SPDX-License-Identifier: Apache-2.0
# cpack -G DEB: libgba, libgba-dev and gba-fake-device, one of each install component. scripts/package.sh builds them.
set(CPACK_PACKAGE_NAME gba)
set(CPACK_PACKAGE_VENDOR "libgba developers")
set(CPACK_PACKAGE_CONTACT "libgba developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)

set(CPACK_COMPONENTS_ALL libgba libgba-dev gba-tools gba-fake-device)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The programs find libgba where the build has it, before it is installed.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(control ${PROJECT_SOURCE_DIR}/scripts/debian)

set(CPACK_COMPONENT_LIBGBA_DESCRIPTION "Barriers in a switch, from user space
 The driver of the Global Barrier Accelerator, with its device rules.")
set(CPACK_DEBIAN_LIBGBA_PACKAGE_NAME libgba)
set(CPACK_DEBIAN_LIBGBA_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBGBA_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBGBA_PACKAGE_CONTROL_EXTRA ${control}/libgba/postinst ${control}/triggers)

set(CPACK_COMPONENT_LIBGBA-DEV_DESCRIPTION "Barriers in a switch, from user space: headers
 What a program needs that is built with libgba: pkg-config gba, or find_package(gba).")
set(CPACK_DEBIAN_LIBGBA-DEV_PACKAGE_NAME libgba-dev)
set(CPACK_DEBIAN_LIBGBA-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBGBA-DEV_PACKAGE_DEPENDS "libgba (= ${PROJECT_VERSION})")

set(CPACK_COMPONENT_GBA-TOOLS_DESCRIPTION "Barriers in a switch, from user space: the gba command
 Lists, checks, tests, measures and resets Global Barrier Accelerators.")
set(CPACK_DEBIAN_GBA-TOOLS_PACKAGE_NAME gba-tools)
set(CPACK_DEBIAN_GBA-TOOLS_PACKAGE_SECTION admin)

set(CPACK_COMPONENT_GBA-FAKE-DEVICE_DESCRIPTION "A Global Barrier Accelerator as a process
 For everybody who does not have the hardware: the same device behind a vfio-user socket.")
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_NAME gba-fake-device)
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_RECOMMENDS libgba)
set(CPACK_DEBIAN_GBA-FAKE-DEVICE_PACKAGE_CONTROL_EXTRA ${control}/gba-fake-device/postinst)

include(CPack)
