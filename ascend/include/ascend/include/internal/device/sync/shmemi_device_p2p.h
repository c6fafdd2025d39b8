/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that write the path from the root of Ascend SHMEM's tree. */
#ifndef SHMEM_ASCEND_INCLUDE_SHMEMI_DEVICE_P2P_H
#define SHMEM_ASCEND_INCLUDE_SHMEMI_DEVICE_P2P_H

#include "../../../../internal/device/sync/shmemi_device_p2p.h" /* IWYU pragma: export */

#endif
