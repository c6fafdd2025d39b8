/* SPDX-License-Identifier: Apache-2.0 */
/* Ascend SHMEM's headers compile alone in C11, with the older names. */
#include <shmem_api.h>

_Static_assert(SHMEM_NOT_INITED == -5 && ACLSHMEM_NOT_SUPPORTED == -100, "the codes of that library");
_Static_assert(sizeof(aclshmemx_uniqueid_t) == 136, "124 bytes behind three numbers");

int main(void) {
  shmem_init_attr_t attr;
  int wrong = shmem_set_attr(0, 1, 1 << 20, "tcp://127.0.0.1:0", &attr) != SHMEM_SUCCESS;
  wrong += shmem_set_data_op_engine_type(&attr, ACLSHMEM_DATA_OP_ROCE) != SHMEM_SUCCESS;
  wrong += shmem_set_timeout(&attr, 0) != SHMEM_INVALID_PARAM;
  attr.n_ranks = 0;
  wrong += shmem_init_attr(&attr) != SHMEM_INVALID_VALUE;
  wrong += shmem_init_status() != 0;
  wrong += shmem_my_pe() != -1;
  return wrong;
}
