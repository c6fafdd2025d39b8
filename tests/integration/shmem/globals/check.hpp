// SPDX-License-Identifier: Apache-2.0
// Checks of a PE: each failure is printed, and the PE continues.
#pragma once

#include <shmem.h>
#include <unistd.h>

#include <cstdio>

inline int& check_failures() {
  static int failures = 0;
  return failures;
}

inline void check(bool good, const char* what, const char* name, int line) {
  if (!good) {
    ++check_failures();
    std::fprintf(stderr, "PE %d (process %d), line %d: %s %s\n", shmem_my_pe(), ::getpid(), line, what, name);
  }
}

/// The exit code for main().
inline int check_result() {
  std::printf("%d failures\n", check_failures());
  return check_failures() == 0 ? 0 : 1;
}

#define CHECK(condition) check((condition), #condition, "", __LINE__)
#define CHECK_NAMED(condition, name) check((condition), #condition, name, __LINE__)
