/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that include this header of Ascend SHMEM: its types are in <shmem.h>. */
#ifndef SHMEM_ASCEND_SHMEM_COMMON_TYPES_H
#define SHMEM_ASCEND_SHMEM_COMMON_TYPES_H

#include "../shmem.h" /* IWYU pragma: export */

#endif
