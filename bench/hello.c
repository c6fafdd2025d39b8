/* SPDX-License-Identifier: Apache-2.0
 * The least that an OpenSHMEM program does; built with ours and with others. With an argument PE 0 makes the file
 * ARGUMENT.ready once all are there, and all stay until ARGUMENT is gone. */
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
