// SPDX-License-Identifier: Apache-2.0
// Only compiled, for arm64: CMakeLists.txt looks for the instructions that order doorbell, WAKEUP and flag.
// tests/model/orders.pml shows why each is needed.
#include "driver/group.hpp"
#include "fake_device/shared_memory.hpp"

// Uapi rules 14 and 20: stores, the doorbell, its fence, WAKEUP.
void member_arrives(gba::Group& group, std::uint64_t sequence) {
  group.arrive(sequence);
}

// Uapi rule 20: the flag, then what others stored before they arrived.
bool member_is_released(const gba::Group& group, std::uint64_t sequence) {
  return group.is_released(sequence);
}

// Uapi rule 14, the device's half: WAKEUP, its fence, the last scan.
std::uint64_t device_falls_asleep(std::atomic<std::uint64_t>& wakeup, const std::atomic<std::uint64_t>& slot) {
  wakeup.store(1, std::memory_order_relaxed);
  fake_device::fence_before_last_scan();
  return slot.load(std::memory_order_relaxed);
}
