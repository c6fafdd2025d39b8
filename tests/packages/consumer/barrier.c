/* SPDX-License-Identifier: Apache-2.0 */
#include <gba/gba.h>
#include <gba/version.h>
#include <string.h>

int main(void) {
  return strcmp(gba_version(), GBA_LIBRARY_VERSION);
}
