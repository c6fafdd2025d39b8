/* SPDX-License-Identifier: Apache-2.0 */
/* For programs written for Ascend SHMEM's kv_shuffle, whose header has this name. */
#ifndef SHMEM_ASCEND_KV_SHUFFLE_KERNEL_H
#define SHMEM_ASCEND_KV_SHUFFLE_KERNEL_H

#include "../kv_shuffle_ops.h" /* IWYU pragma: export */

#endif
