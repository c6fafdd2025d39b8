/* SPDX-License-Identifier: Apache-2.0 */
/* A small stand-in for the header of this name of CANN. */
#ifndef SHMEM_ASCEND_RT_FFTS_H
#define SHMEM_ASCEND_RT_FFTS_H

#include <stdint.h>

#include "../../../shmem_device.h"

#ifdef __cplusplus
#define RT_FFTS_INLINE inline
#else
#define RT_FFTS_INLINE static inline
#endif

/* The word that the host passes to kernels: cores need none to synchronise. Returns 0. */
RT_FFTS_INLINE int rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length) SHMEM_NOEXCEPT {
  *address = shmemx_init_status() == SHMEMX_STATUS_IS_INITIALIZED ? shmemx_get_ffts_config() : 0;
  *length = 0;
  return 0;
}

#endif
