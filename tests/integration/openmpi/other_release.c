/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded, it makes a component believe that Open MPI is of another series. */
#include <mpi.h>
#include <stdio.h>

__attribute__((visibility("default"))) int MPI_Get_library_version(char* version, int* length) {
  const char* const other = OMPI_MAJOR_VERSION >= 5 ? "4.1.4" : "5.0.3";
  *length = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Open MPI v%s, package: test", other);
  return MPI_SUCCESS;
}
