// SPDX-License-Identifier: Apache-2.0
// A library that a program opens after libshmem, as libshmem opens those of the network. Its destructor says that it
// runs.
#include <unistd.h>

__attribute__((destructor)) static void end(void) {
  static const char text[] = "libraries are taken down\n";
  (void)!write(STDOUT_FILENO, text, sizeof text - 1);
}
