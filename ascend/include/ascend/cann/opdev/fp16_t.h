/* SPDX-License-Identifier: Apache-2.0 */
/* A small stand-in for the header of this name of CANN: numbers of 16 bits. C++ only. */
#ifndef SHMEM_ASCEND_FP16_T_H
#define SHMEM_ASCEND_FP16_T_H

#include "../../../aclshmem_half.h"

namespace op {
using fp16_t = aclshmem_half_t;
}  // namespace op
using float16_t = aclshmem_half_t;

/* After this header, kernels define inline with attribute((always_inline)), as Ascend's compiler takes it. */
#define attribute(list)

#endif
