// SPDX-License-Identifier: Apache-2.0
// A replay of requests by members of an exchange: what the test and the members share, in a file that all map.
#pragma once

#include <fcntl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/mapping.hpp"

namespace exchange_replay {

constexpr std::size_t kMembers = 8;
constexpr std::size_t kMostStarts = 4096;

using Count = std::atomic<std::uint64_t>;

enum Phase : std::uint8_t { kFind, kPull, kBackgroundPull, kPublish, kWithdraw };
constexpr std::array<const char*, 5> kPhases{"find", "pull", "pull in the background", "publish", "withdraw"};

/// A call, and what may have made it slow.
struct Call {
  Count ns{0};
  Count waited_ns{0};  // for a processor
  Count blocks{0};
  Count faults{0};  // page faults
  Count sleeps{0};
  Count after_kill_ns{0};
};

/// What a member has done, over all its starts. It survives the member that counts.
struct Counts {
  Count requests{0}, published{0}, withdrawn{0};
  Count pulled{0}, pulled_bytes{0}, missing{0}, stale{0}, dead{0};
  Count wrong_bytes{0}, wrong_errors{0};
  std::array<Call, kPhases.size()> longest;
  std::array<Call, kPhases.size()> longest_running;  // the longest without the time without a processor
};

/// A start of a member: by it others know whether the owner of a block may have ended.
struct Start {
  std::atomic<std::uint64_t> id{0};
  std::atomic<bool> killed{false};  // set before the signal
  std::atomic<std::int64_t> begin_ns{0};
  std::atomic<std::int64_t> end_ns{0};  // 0: it was not killed
  Count served{0};                      // blocks that others have pulled from it
};

/// What a member has found of what it looked for, in each second since the begin.
constexpr std::size_t kMostSeconds = 1024;
struct Second {
  Count wanted{0}, found{0};
};

/// Of a member with a holder: the blocks that it has used last, and how many of them its next start has found.
constexpr std::size_t kRemembered = 256;
struct Memory {
  std::array<std::atomic<std::uint64_t>, kRemembered> blocks;  // + 1; a ring
  Count next{0};
  Count looked_for{0}, found{0};
};

struct Board {
  std::atomic<std::int64_t> begin_ns{0};  // of the steady clock; the requests' time 0
  std::atomic<std::int64_t> kill_ns{0};   // the last one
  std::atomic<bool> stop{false};
  std::atomic<std::uint32_t> finished{0};  // members that have made their last call
  std::atomic<std::uint32_t> starts{0};
  std::array<Start, kMostStarts> start;
  std::array<std::atomic<std::uint32_t>, kMembers> last_start;  // + 1
  std::array<Counts, kMembers> counts;
  std::array<std::array<Second, kMostSeconds>, kMembers> seconds;
  std::array<Memory, kMembers> memory;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

class SharedBoard {
 public:
  /// Maps the file, which has the size of a Board: zeros at first.
  explicit SharedBoard(const std::string& path) {
    const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (::ftruncate(file.get(), sizeof(Board)) == 0) {
      if (auto mapped = base::Mapping::share(file.get(), sizeof(Board))) {
        memory_ = *std::move(mapped);
      }
    }
  }
  explicit operator bool() const { return static_cast<bool>(memory_); }
  Board* operator->() const { return reinterpret_cast<Board*>(memory_.data()); }

 private:
  base::Mapping memory_;
};

inline std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace exchange_replay
