/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the programs of this folder, which are compiled as C11 and as C++. */
#ifndef ASCEND_CHECK_H
#define ASCEND_CHECK_H

#include <aclshmem.h>
#include <stdio.h>
#include <string.h>

#define PE_CHECK_ENDS_JOB
#include "tests/support/pe.h"

/* PE `pe`'s element i, in every type: small enough for a signed char, different for neighbours. */
static inline short pattern(int pe, size_t i) {
  return (short)(((size_t)pe * 7 + i * 3 + 1) % 100);
}
static inline int right(void) {
  return (aclshmem_my_pe() + 1) % aclshmem_n_pes();
}
static inline int left(void) {
  return (aclshmem_my_pe() + aclshmem_n_pes() - 1) % aclshmem_n_pes();
}

#endif
