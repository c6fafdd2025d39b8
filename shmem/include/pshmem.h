/* SPDX-License-Identifier: Apache-2.0 */
/* The second name of each routine, pshmem_X (OpenSHMEM 1.6, section 10): shmem.h declares both. */
#ifndef SHMEM_PSHMEM_H
#define SHMEM_PSHMEM_H
#include "shmem.h"
#endif
