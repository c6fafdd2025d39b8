/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded, it makes a component believe that Open MPI is a later release. */
#include <mpi.h>
#include <stdio.h>

__attribute__((visibility("default"))) int MPI_Get_library_version(char* version, int* length) {
  *length = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Open MPI v5.0.3, package: test");
  return MPI_SUCCESS;
}
