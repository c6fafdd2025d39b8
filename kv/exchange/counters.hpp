// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace shmem::exchange {

/// What has happened, for people: in the member's directory, where others see it. Relaxed: nothing depends on them.
struct Counters {
  using Count = std::atomic<std::uint64_t>;
  Count published{0}, withdrawn{0}, leases_expired{0}, refused{0};
  Count found{0}, missed{0}, over_quota{0};
  Count pulled_blocks{0}, pulled_bytes{0};
  Count failed_stale{0}, failed_dead{0}, failed_corrupt{0}, failed_other{0};
  // What is added goes here: to earlier versions it is unused, and theirs is 0 there.
  Count failed_timeout{0};
  Count unreachable{0};  // now
};

inline void add(Counters::Count& count, std::uint64_t number = 1) {
  count.fetch_add(number, std::memory_order_relaxed);
}

}  // namespace shmem::exchange
