/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a communicator's barriers call, from Open MPI's own table of functions. */
#define _GNU_SOURCE /* dladdr */  // NOLINT(bugprone-reserved-identifier)
#include "whose.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"

static void print_place(const char* name, const void* function) {
  Dl_info info;
  if (dladdr(function, &info) == 0) {
    return;
  }
  const char* const slash = strrchr(info.dli_fname, '/');
  printf("%s: %s+%#tx\n", name, slash == NULL ? info.dli_fname : slash + 1,
         (const char*)function - (const char*)info.dli_fbase);
}

void whose_print(MPI_Comm comm) {
  const mca_coll_base_comm_coll_t* const calls = comm->c_coll;
  const void* barrier = NULL;
  const void* ibarrier = NULL;
  memcpy(&barrier, &calls->coll_barrier, sizeof barrier); /* C has no cast from functions to objects */
  memcpy(&ibarrier, &calls->coll_ibarrier, sizeof ibarrier);
  print_place("MPI_Barrier", barrier);
  print_place("MPI_Ibarrier", ibarrier);
}
