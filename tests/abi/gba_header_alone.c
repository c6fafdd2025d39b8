/* SPDX-License-Identifier: Apache-2.0 */
/* gba/gba.h is the only header here, so it must include all that it needs: in C11 here, in C++20 in
 * gba_header_alone.cpp. Every call that it declares must link. */
#include <gba/gba.h>

typedef void (*any_function)(void);

/* The exports test finds declared names that are missing here. */
const any_function gba_every_call[] = {
    (any_function)gba_version,
    (any_function)gba_error_text,
    (any_function)gba_open,
    (any_function)gba_close,
    (any_function)gba_device_get_info,
    (any_function)gba_device_get_counters,
    (any_function)gba_group_alloc,
    (any_function)gba_group_enable,
    (any_function)gba_group_disable,
    (any_function)gba_group_free,
    (any_function)gba_group_join,
    (any_function)gba_group_leave,
    (any_function)gba_group_arrive,
    (any_function)gba_group_test,
    (any_function)gba_group_sleep,
    (any_function)gba_group_wait,
    (any_function)gba_group_missing,
    (any_function)gba_group_get_status,
    (any_function)gba_open_with,
    (any_function)gba_device_reset,
    (any_function)gba_list,
    (any_function)gba_device_read_register,
    (any_function)gba_device_write_register,
};

int main(void) {
  unsigned i;
  for (i = 0; i < sizeof(gba_every_call) / sizeof(gba_every_call[0]); ++i) {
    if (gba_every_call[i] == 0) {
      return 1;
    }
  }
  return gba_version()[0] == '\0';
}
