// SPDX-License-Identifier: Apache-2.0
// shmemx_exchange.h needs no other header, in C11.
#include <shmemx_exchange.h>

int main(void) {
  shmemx_exchange_t* exchange = NULL;
  return shmemx_exchange_open(NULL, NULL, &exchange) < 0 ? 0 : 1;
}
