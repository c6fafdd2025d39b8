/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/pe.h"

#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <unistd.h>

static int failures;

static void report(const char* file, int line, const char* what, const char* detail) {
  fprintf(stderr, "PE %d (process %d): %s:%d: expected that %s%s%s (%s)\n", shmem_my_pe(), (int)getpid(), file, line,
          what, *detail != '\0' ? ", " : "", detail, shmemx_error_text());
}

void pe_failed(const char* file, int line, const char* what, const char* detail) {
  __atomic_fetch_add(&failures, 1, __ATOMIC_SEQ_CST);
  report(file, line, what, detail);
}

void pe_end_job(const char* file, int line, const char* what) {
  report(file, line, what, "");
  shmem_global_exit(1);
}

int pe_failures(void) {
  return __atomic_load_n(&failures, __ATOMIC_SEQ_CST);
}

int pe_result(void) {
  printf("PE %d: %d failures\n", shmem_my_pe(), pe_failures());
  return pe_failures() == 0 ? 0 : 1;
}
