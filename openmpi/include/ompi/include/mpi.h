/* SPDX-License-Identifier: Apache-2.0 */
/* Debian's package has this header of Open MPI's tree only where programs include it. */
#include <mpi.h>
