/* SPDX-License-Identifier: Apache-2.0 */
/* For kernels that include this header of Ascend SHMEM for SHMEMI_PROF_START: see aclshmem_log.h. */
#ifndef SHMEM_ASCEND_SHMEMI_PROF_H
#define SHMEM_ASCEND_SHMEMI_PROF_H

#include "../../shmem.h" /* IWYU pragma: export */

#endif
