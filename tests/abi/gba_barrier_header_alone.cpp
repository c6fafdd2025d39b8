// SPDX-License-Identifier: Apache-2.0
// gba/barrier.h compiles alone in C++, and its structs are plain data with the same layout as in C.
#include <gba/barrier.h>
// The header above is under test and comes first; these are for the assertions.
#include <type_traits>

static_assert(std::is_trivially_copyable_v<gba_barrier_config> && std::is_standard_layout_v<gba_barrier_config>);
static_assert(std::is_standard_layout_v<gba_barrier_waiting> && std::is_standard_layout_v<gba_barrier_status>);

int main() {
  gba_barrier_config config{};
  gba_barrier* barrier = nullptr;
  return gba_barrier_create(&config, &barrier) < 0 && barrier == nullptr ? 0 : 1;
}
