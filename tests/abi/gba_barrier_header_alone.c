/* SPDX-License-Identifier: Apache-2.0 */
/* gba/barrier.h is the only header here, so it must include all that it needs: in C11 here, in C++20 in
 * gba_barrier_header_alone.cpp. Every call that it declares must link. */
#include <gba/barrier.h>

typedef void (*any_function)(void);

/* The exports test finds declared names that are missing here. */
const any_function gba_every_barrier_call[] = {
    (any_function)gba_barrier_port_open,     (any_function)gba_barrier_port_close,
    (any_function)gba_barrier_port_get_info, (any_function)gba_barrier_port_mark_suspect,
    (any_function)gba_barrier_port_reopen,   (any_function)gba_barrier_port_await,
    (any_function)gba_barrier_create,        (any_function)gba_barrier_destroy,
    (any_function)gba_barrier_offer,         (any_function)gba_barrier_join,
    (any_function)gba_barrier_begin,         (any_function)gba_barrier_disable,
    (any_function)gba_barrier_leave,         (any_function)gba_barrier_free,
    (any_function)gba_barrier_uses_device,   (any_function)gba_barrier_arrive,
    (any_function)gba_barrier_test,          (any_function)gba_barrier_poll,
    (any_function)gba_barrier_sleep,         (any_function)gba_barrier_wait,
    (any_function)gba_barrier_conclude,      (any_function)gba_barrier_turn_off,
    (any_function)gba_barrier_missing,       (any_function)gba_barrier_get_status,
};

int main(void) {
  static gba_barrier_config config;
  gba_barrier* barrier;
  unsigned i;
  for (i = 0; i < sizeof(gba_every_barrier_call) / sizeof(gba_every_barrier_call[0]); ++i) {
    if (gba_every_barrier_call[i] == 0) {
      return 1;
    }
  }
  return gba_barrier_create(&config, &barrier) == 0;
}
