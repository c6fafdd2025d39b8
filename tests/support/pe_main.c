/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pe.h"

static struct {
  const char* name;
  int (*run)(int argc, char** argv);
} parts[64];
static size_t part_count;

void pe_add_part(const char* name, int (*run)(int argc, char** argv)) {
  if (part_count == sizeof parts / sizeof *parts) {
    abort();
  }
  parts[part_count].name = name;
  parts[part_count++].run = run;
}

int main(int argc, char** argv) {
  for (size_t i = 0; i < part_count && argc > 1; ++i) {
    if (strcmp(parts[i].name, argv[1]) == 0) {
      return parts[i].run(argc - 1, argv + 1);
    }
  }
  fprintf(stderr, "%s: there is no part \"%s\"\n", argv[0], argc > 1 ? argv[1] : "");
  return 2;
}
