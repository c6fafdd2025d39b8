/* SPDX-License-Identifier: Apache-2.0
 * A minimal OpenSHMEM program, built with libshmem and with other libraries. With an argument, PE 0 creates the file
 * ARGUMENT.ready once all PEs have started, and all PEs wait until the file ARGUMENT is removed. */
#include <shmem.h>
#include <stdio.h>
#include <unistd.h>

static void stay(const char* file) {
  char ready[4096];
  FILE* made;
  snprintf(ready, sizeof ready, "%s.ready", file);
  made = fopen(ready, "w");
  if (made != NULL) {
    fclose(made);
  }
  while (access(file, F_OK) == 0) {
    usleep(10000);
  }
}

int main(int argc, char** argv) {
  shmem_init();
  if (argc > 1) {
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
      stay(argv[1]);
    }
    shmem_barrier_all();
  }
  shmem_finalize();
  return 0;
}
