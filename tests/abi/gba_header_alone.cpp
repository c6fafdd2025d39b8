// SPDX-License-Identifier: Apache-2.0
// gba/gba.h compiles alone in C++, and its structs are plain data with the same layout as in C.
#include <gba/gba.h>
// The header above is under test and comes first; these are for the assertions.
#include <cstddef>
#include <type_traits>

static_assert(std::is_trivially_copyable_v<gba_group_handle> && std::is_standard_layout_v<gba_group_handle>);
static_assert(std::is_standard_layout_v<gba_device_info> && std::is_standard_layout_v<gba_device_counters>);
static_assert(sizeof(gba_group_handle) == 24 && offsetof(gba_group_handle, sequence) == 16,
              "a handle means the same on every host");

int main() {
  gba_device* device = nullptr;
  return gba_open("", nullptr) < 0 && device == nullptr ? 0 : 1;
}
