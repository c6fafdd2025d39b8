/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libshmem, from the path in its first argument, runs a job of one PE, unloads it and returns from main. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/wait.h>

typedef void (*call)(void);

static int run(void* library, const char* name) {
  union {
    void* symbol;
    call function;
  } found;
  found.symbol = dlsym(library, name);
  if (found.symbol == NULL) {
    fprintf(stderr, "no %s\n", name);
    return 1;
  }
  found.function();
  return 0;
}

int main(int argc, char** argv) {
  void* library = dlopen(argc > 1 ? argv[1] : "libshmem.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (run(library, "shmem_init") != 0 || run(library, "shmem_finalize") != 0 || dlclose(library) != 0) {
    return 1;
  }
  /* Handlers of fork(), too. */
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  waitpid(child, NULL, 0);
  printf("unloaded\n");
  return 0;
}
