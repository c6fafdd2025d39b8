/* SPDX-License-Identifier: Apache-2.0 */
/* acl.h compiles alone in C11, and includes Ascend SHMEM's old names. */
#include <acl/acl.h>
#include <shmem_api.h>

int main(void) {
  aclrtStream stream = NULL;
  int words[2] = {1, 2};
  int wrong = aclInit(NULL) != ACL_SUCCESS || aclrtCreateStream(&stream) != ACL_SUCCESS;
  wrong += aclrtMemcpyAsync(words, sizeof words, words + 1, sizeof(int), ACL_MEMCPY_DEFAULT, stream) != ACL_SUCCESS;
  wrong += aclrtSynchronizeStream(stream) != ACL_SUCCESS || words[0] != 2;
  wrong += aclrtDestroyStream(stream) != ACL_SUCCESS || aclFinalize() != ACL_SUCCESS;
  wrong += shmem_finalize() != ACLSHMEM_NOT_INITED;
  void (*const put)(int32_t*, const int32_t*, size_t, int) = shmem_put_int32_mem_nbi;
  return wrong + (put == NULL ? 1 : 0);
}
