// SPDX-License-Identifier: Apache-2.0
// shmemx_group.h needs no other header, in C11.
#include <shmemx_group.h>

int main(void) {
  shmemx_group_t* group = NULL;
  return shmemx_group_create(NULL, 0, 1, &group) < 0 ? 0 : 1;
}
