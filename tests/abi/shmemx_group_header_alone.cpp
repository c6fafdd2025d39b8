// SPDX-License-Identifier: Apache-2.0
// shmemx_group.h needs no other header, in C++20.
#include <shmemx_group.h>

int main() {
  shmemx_group_t* group = nullptr;
  return shmemx_group_create(nullptr, 0, 1, &group) < 0 ? 0 : 1;
}
