// SPDX-License-Identifier: Apache-2.0
// For an instruction counter: so many rounds of one arrive and one successful test in a group of one.
//
//   driver_fast_path DEVICE ROUNDS
//
// The release is awaited in between by gba_group_wait, which is not to be counted.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "gba/gba.h"

namespace {

int failed(const char* what) {
  std::printf("failed %s: %s\n", what, gba_error_text());
  return 1;
}

int run(gba_device* device, std::uint64_t rounds) {
  gba_group_handle handle{};
  gba_group* group = nullptr;
  if (gba_group_alloc(device, 1, 0, &handle) != 0) return failed("alloc");
  if (gba_group_join(device, &handle, 0, &group) != 0) return failed("join");
  if (gba_group_enable(device, &handle) != 0) return failed("enable");
  for (std::uint64_t k = 1; k <= rounds; ++k) {
    gba_group_arrive(group, k);
    if (gba_group_wait(group, k, GBA_WAIT_FOREVER) != 0) return failed("wait");
    if (gba_group_test(group, k) != 0) return failed("test");
  }
  gba_group_disable(device, &handle);
  gba_group_leave(group);
  gba_group_free(device, &handle);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  gba_device* device = nullptr;
  if (gba_open(argv[1], &device) != 0) return failed("open");
  const int result = run(device, std::strtoull(argv[2], nullptr, 10));
  gba_close(device);
  return result;
}
