/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GBA_TESTS_OPENMPI_WHOSE_H
#define GBA_TESTS_OPENMPI_WHOSE_H

#include <mpi.h>

/* "MPI_Barrier: LIBRARY+OFFSET", the function that it calls, and the same of MPI_Ibarrier; a line each. */
void whose_print(MPI_Comm comm);

#endif
