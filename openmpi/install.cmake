# SPDX-License-Identifier: Apache-2.0
# Installs the components. Open MPI finds them in its own folder and in those of mca_base_component_path (README.md).
include(GNUInstallDirs)

option(GBA_OPENMPI_FOLDER "Install the components into Open MPI's own folder, where it finds them without a variable" OFF)
set(GBA_OPENMPI_COMPONENTS ${CMAKE_INSTALL_LIBDIR}/libgba/openmpi)
set(rpath_of_components "$ORIGIN/../..")
if(GBA_OPENMPI_FOLDER)
  # ompi_info knows the folder; CMake's module for MPI does not.
  find_program(OMPI_INFO ompi_info REQUIRED)
  execute_process(COMMAND ${OMPI_INFO} --parsable --path pkglibdir
    OUTPUT_VARIABLE pkglibdir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE ".*path:pkglibdir:" "" GBA_OPENMPI_COMPONENTS "${pkglibdir}")
  set(rpath_of_components ${CMAKE_INSTALL_FULL_LIBDIR})
endif()
foreach(component mca_coll_gba mca_scoll_gba)
  if(TARGET ${component})
    set_target_properties(${component} PROPERTIES INSTALL_RPATH "${rpath_of_components}" INSTALL_RPATH_USE_LINK_PATH ON)
    gba_install(TARGETS ${component} LIBRARY DESTINATION ${GBA_OPENMPI_COMPONENTS} COMPONENT libgba-openmpi)
  endif()
endforeach()
