/* SPDX-License-Identifier: Apache-2.0 */
/* A small stand-in for the header of this name of CANN: numbers of 16 bits. C++ only. */
#ifndef SHMEM_ASCEND_BFLOAT16_H
#define SHMEM_ASCEND_BFLOAT16_H

#include "fp16_t.h" /* IWYU pragma: export */

namespace op {
using bfloat16 = aclshmem_bfloat16_t;
}  // namespace op

#endif
