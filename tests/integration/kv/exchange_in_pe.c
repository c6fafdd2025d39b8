/* SPDX-License-Identifier: Apache-2.0 */
/* A PE that is also a member of an exchange, linked with libshmem alone. libshmem and libkvexchange have one logger,
 * one text of the last error for each thread, and one secret, which the PE has taken out of its environment. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <shmem.h>
#include <shmemx.h>
#include <shmemx_exchange.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define CHECK(condition)                                                                               \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      fprintf(stderr, "line %d: %s; the last error: %s\n", __LINE__, #condition, shmemx_error_text()); \
      exit(1);                                                                                         \
    }                                                                                                  \
  } while (0)

static int warnings;

static void count(int level, const char* text) {
  warnings += level == SHMEMX_LOG_WARN && strstr(text, "is more than") != NULL;
}

static void set_environment(void) {
  setenv("SHMEM_GBA", "off", 1);
  setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
  setenv("SHMEM_UID_RANK", "0", 1);
  setenv("SHMEM_BOOTSTRAP", "local", 1);
  setenv("SHMEM_UID_SECRET", "of a test of two libraries", 1);
}

int main(void) {
  set_environment();
  shmem_init();
  CHECK(shmem_n_pes() == 1 && getenv("SHMEM_UID_SECRET") == NULL);
  void* const other = dlopen(KVEXCHANGE_SONAME, RTLD_NOW | RTLD_NOLOAD);
  CHECK(other != NULL);

  shmemx_exchange_t* exchange = NULL;
  CHECK(shmemx_exchange_open("not/a/name", NULL, &exchange) == -EINVAL);
  const char* (*other_text)(void) = NULL;
  *(void**)&other_text = dlsym(other, "shmemx_error_text");
  CHECK(other_text != NULL && other_text != shmemx_error_text);
  CHECK(strstr(shmemx_error_text(), "this name") != NULL && strcmp(other_text(), shmemx_error_text()) == 0);

  char name[32];
  snprintf(name, sizeof name, "in-pe-%d", (int)getpid());
  CHECK(shmemx_exchange_open(name, NULL, &exchange) == 0);
  shmemx_set_logger(count);
  struct sysinfo info;
  CHECK(sysinfo(&info) == 0);
  shmemx_memory_t memory = {NULL, 2 * (info.totalram + info.totalswap) * info.mem_unit, -1, 0};
  uint32_t region = 0;
  CHECK(shmemx_exchange_register(exchange, &memory, &region) == 0);
  CHECK(warnings == 1);
  shmemx_set_logger(NULL);

  shmemx_exchange_network_t network = {"127.0.0.1:0", NULL, NULL, 0, {0}};
  const int connected = shmemx_exchange_connect(exchange, &network);
  CHECK(connected == 0 || connected == -ENOTSUP); /* the latter without UCX */

  /* The same handle by the other library's name of the call. */
  void (*other_close)(shmemx_exchange_t*) = NULL;
  *(void**)&other_close = dlsym(other, "shmemx_exchange_close");
  CHECK(other_close != NULL);
  other_close(exchange);
  shmem_finalize();
  return 0;
}
