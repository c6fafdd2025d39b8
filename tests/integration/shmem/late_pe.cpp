// SPDX-License-Identifier: Apache-2.0
// A PE that joins the job and then never comes to a barrier.
#include <shmem.h>
#include <unistd.h>

int main() {
  shmem_init();
  ::sleep(30);
  return 0;
}
