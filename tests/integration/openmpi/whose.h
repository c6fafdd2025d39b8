/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GBA_TESTS_OPENMPI_WHOSE_H
#define GBA_TESTS_OPENMPI_WHOSE_H

#include <mpi.h>

/* Prints "MPI_Barrier: LIBRARY+OFFSET", the function that it calls, and a second line for MPI_Ibarrier. */
void whose_print(MPI_Comm comm);

#endif
