/* SPDX-License-Identifier: Apache-2.0 */
/* shmem.h compiles alone in C11, as the first header. shmem_sync takes a team or an active set; its address is that of
 * the function for active sets. */
#include <shmem.h>
#include <shmemx.h>

_Static_assert(_Generic(&(shmem_sync), void (*)(int, int, int, long*) : 1, default : 0), "the C function");
_Static_assert(_Generic(shmem_sync(SHMEM_TEAM_WORLD), int : 1, default : 0), "the team's form gives a status");

int main(void) {
  return shmem_n_pes() == -1 ? 0 : 1;
}
