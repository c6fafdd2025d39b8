/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a library from a path, uses and unloads it, and returns from main.
 *
 *   unloads_library PATH [EXCHANGE]
 *       libshmem: runs a job of one PE
 *       libkvexchange: opens EXCHANGE, and closes it at the end only: its threads run on while it is not loaded */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/wait.h>

typedef void (*call)(void);
typedef int (*open_call)(const char*, const void*, void**);
typedef int (*close_call)(void*);

static union {
  void* symbol;
  call function;
  open_call open;
  close_call close;
} found;

static int find(void* library, const char* name) {
  found.symbol = dlsym(library, name);
  if (found.symbol == NULL) {
    fprintf(stderr, "no %s\n", name);
  }
  return found.symbol != NULL;
}

static int run(void* library, const char* name) {
  if (!find(library, name)) {
    return 1;
  }
  found.function();
  return 0;
}

/* Handlers of fork(), too. */
static void fork_once(void) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static int use_exchange(void* library, const char* name) {
  void* exchange = NULL;
  if (!find(library, "shmemx_exchange_open") || found.open(name, NULL, &exchange) != 0 ||
      !find(library, "shmemx_exchange_close")) {
    return 1;
  }
  const close_call close_exchange = found.close;
  if (dlclose(library) != 0) {
    return 1;
  }
  usleep(50000); /* its threads run */
  fork_once();
  return close_exchange(exchange);
}

static int use_job(void* library) {
  if (run(library, "shmem_init") != 0 || run(library, "shmem_finalize") != 0 || dlclose(library) != 0) {
    return 1;
  }
  fork_once();
  return 0;
}

int main(int argc, char** argv) {
  void* library = dlopen(argc > 1 ? argv[1] : "libshmem.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if ((argc > 2 ? use_exchange(library, argv[2]) : use_job(library)) != 0) {
    return 1;
  }
  printf("unloaded\n");
  return 0;
}
