/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the programs that tests start as PEs, in C11 and C++. A program consists of parts, and runs the one that
 * its first argument names:
 *
 *   PE_PART(name) { ... return 0; }      PROGRAM name [ARGUMENT...]; argv[0] is the name
 *
 * CHECK reports a condition that does not hold. The PE continues, and pe_result() gives its exit code; in files that
 * define PE_CHECK_ENDS_JOB the job ends with status 1. This header includes none of the library, and so leaves the
 * choice of headers to each file.
 */
#ifndef TESTS_SUPPORT_PE_H
#define TESTS_SUPPORT_PE_H

#ifdef __cplusplus
extern "C" {
#endif

void pe_add_part(const char* name, int (*run)(int argc, char** argv));

#define PE_PART(NAME)                                            \
  static int pe_run_##NAME(int argc, char** argv);               \
  __attribute__((constructor)) static void pe_add_##NAME(void) { \
    pe_add_part(#NAME, pe_run_##NAME);                           \
  }                                                              \
  static int pe_run_##NAME(__attribute__((unused)) int argc, __attribute__((unused)) char** argv)

/* Prints what did not hold. `detail` may be empty. */
void pe_failed(const char* file, int line, const char* what, const char* detail);
__attribute__((noreturn)) void pe_end_job(const char* file, int line, const char* what);
int pe_failures(void);
/* Prints the number of failures. Returns an exit code. */
int pe_result(void);

#ifdef PE_CHECK_ENDS_JOB
#define CHECK(condition)                          \
  do {                                            \
    if (!(condition)) {                           \
      pe_end_job(__FILE__, __LINE__, #condition); \
    }                                             \
  } while (0)
#else
#define CHECK(condition) CHECK_NAMED(condition, "")
#define CHECK_NAMED(condition, name) ((condition) ? (void)0 : pe_failed(__FILE__, __LINE__, #condition, name))
#endif

#ifdef __cplusplus
}
#endif

#endif
