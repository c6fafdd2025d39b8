/* SPDX-License-Identifier: Apache-2.0 */
/* shmem_device.h compiles alone in C11, as the first header: it has the calls without the typed forms. */
#include <shmem_device.h>

_Static_assert(sizeof(shmemx_sync_word_t) == 64 && _Alignof(shmemx_sync_word_t) == 64, "a cache line each");

int main(void) {
  return shmemx_current_core() == NULL ? 0 : 1;
}
