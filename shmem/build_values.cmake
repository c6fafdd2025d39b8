# SPDX-License-Identifier: Apache-2.0
# What `shmem_info --build` tells: the libraries that were found, and the commit.
set(SHMEM_BUILT_WITH_UCX)
if(UCX_FOUND)
  set(SHMEM_BUILT_WITH_UCX ${UCX_VERSION})
endif()
set(SHMEM_BUILT_WITH_PMIX)
if(PMIX_FOUND)
  set(SHMEM_BUILT_WITH_PMIX ${PMIX_VERSION})
endif()
list(JOIN SHMEM_MPI_VERSIONS ", " SHMEM_BUILT_WITH_MPI)
configure_file(build_values.hpp.in ${PROJECT_BINARY_DIR}/generated/shmem/build_values.hpp @ONLY)

set(commit_file ${PROJECT_BINARY_DIR}/generated/commit.cpp)
add_custom_target(shmem_commit_file
  COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D OUTPUT=${commit_file} -P ${CMAKE_CURRENT_SOURCE_DIR}/commit.cmake
  BYPRODUCTS ${commit_file} COMMENT "Asking git for the commit" VERBATIM)
add_library(shmem_commit OBJECT ${commit_file})
add_dependencies(shmem_commit shmem_commit_file)
target_include_directories(shmem_commit PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(shmem_commit PRIVATE gba_warnings)
