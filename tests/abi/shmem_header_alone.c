/* SPDX-License-Identifier: Apache-2.0 */
/* shmem.h compiles alone in C11, as the first header. shmem_sync takes a team or an active set; its address is that of
 * the function for active sets. */
#include <shmem.h>
#include <shmemx.h>

_Static_assert(_Generic(SHMEM_TEAM_INVALID, struct shmem_team* : 1, default : 0), "a pointer to an incomplete type");
_Static_assert(sizeof(shmem_team_t) == sizeof(void*), "as bindings assume");

_Static_assert(_Generic(&(shmem_sync), void (*)(int, int, int, long*) : 1, default : 0), "the C function");
_Static_assert(_Generic(shmem_sync(SHMEM_TEAM_WORLD), int : 1, default : 0), "the team's form gives a status");

_Static_assert(LIBSHMEM_MAJOR_VERSION == MAJOR && LIBSHMEM_MINOR_VERSION == MINOR && LIBSHMEM_PATCH_VERSION == PATCH,
               "shmem_compat.h has the version of CMakeLists.txt");
#if OSHMEM_SPEC_VERSION < 10600 || LIBSHMEM_VERSION < 100
#error "as programs compare them"
#endif

int main(void) {
  return shmem_n_pes() == -1 ? 0 : 1;
}
