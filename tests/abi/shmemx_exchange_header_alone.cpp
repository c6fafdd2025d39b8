// SPDX-License-Identifier: Apache-2.0
// shmemx_exchange.h needs no other header, in C++20.
#include <shmemx_exchange.h>

int main() {
  shmemx_exchange_t* exchange = nullptr;
  return shmemx_exchange_open(nullptr, nullptr, &exchange) < 0 ? 0 : 1;
}
