// SPDX-License-Identifier: Apache-2.0
// Flags between the cores of a PE: counts that one core gives to others.
#include <algorithm>

#include "shmem/api/waiting.hpp"
#include "shmem_device.h"

namespace api = shmem::api;
using api::LaunchFlags;

namespace {

static_assert(SHMEMX_CORE_FLAGS == LaunchFlags::kFlags && SHMEMX_FLAG_PARTNER + 1 == LaunchFlags::kModes);

/// 0, or the error that the core keeps.
int check_flag(shmemx_core_t& core, const char* call, int mode, int flag) {
  if (core.error != std::errc{}) {
    return core.failed();
  }
  if (flag < 0 || flag >= SHMEMX_CORE_FLAGS || mode < SHMEMX_FLAG_ALL || mode > SHMEMX_FLAG_PARTNER) {
    const std::string text =
        fmt::format("{}there is no flag {} with mode {} (flags 0 to {}, modes 0 to {})", api::said_by(core, call), flag,
                    mode, SHMEMX_CORE_FLAGS - 1, SHMEMX_FLAG_PARTNER);
    return core.keep(shmem::fail(std::errc::invalid_argument, text));
  }
  if (!core.flags.make()) {
    return core.keep(
        shmem::fail(std::errc::not_enough_memory, api::said_by(core, call) + "no memory for the flags of the cores"));
  }
  return 0;
}

/// The counts that a core has got so far.
class Received {
 public:
  Received(LaunchFlags& flags, int core, int cores, int flag)
      : flags_(flags), core_(core), cores_(cores), flag_(flag) {}

  [[nodiscard]] std::uint32_t total() const {
    const int partner = core_ ^ 1;
    std::uint32_t all = least(SHMEMX_FLAG_ALL, 0, cores_);
    all += least(SHMEMX_FLAG_PAIR, core_ & ~1, std::min((core_ | 1) + 1, cores_));
    return partner < cores_ ? all + count(partner, SHMEMX_FLAG_PARTNER) : all;
  }
  /// A core of [first, end) that has set the flag the least often.
  [[nodiscard]] std::uint32_t least(int mode, int first, int end) const {
    std::uint32_t fewest = count(first, mode);
    for (int core = first + 1; core < end; ++core) {
      fewest = std::min(fewest, count(core, mode));
    }
    return fewest;
  }

 private:
  // Acquire: pairs with shmemx_core_flag_set.
  [[nodiscard]] std::uint32_t count(int core, int mode) const {
    return flags_.count(core, mode, flag_).load(std::memory_order_acquire);
  }

  LaunchFlags& flags_;
  const int core_;
  const int cores_;
  const int flag_;
};

}  // namespace

extern "C" {

int shmemx_core_flag_set(shmemx_core_t* core, int mode, int flag) noexcept try {
  constexpr const char* kCall = "shmemx_core_flag_set";
  shmemx_core_t& self = api::valid_core(kCall, core);
  if (const int error = check_flag(self, kCall, mode, flag); error != 0) {
    return error;
  }
  self.flags.count(self.core.index(), mode, flag).fetch_add(1, std::memory_order_release);
  // As publish(): a sleeper that has not seen the count sees that this word has changed.
  shmem::SyncWord& changes = self.flags.changes(flag);
  changes.value.fetch_add(1, std::memory_order_seq_cst);
  shmem::wake_sleepers(changes);
  return 0;
}
SHMEM_CATCH(int)

int shmemx_core_flag_wait(shmemx_core_t* core, int flag) noexcept try {
  constexpr const char* kCall = "shmemx_core_flag_wait";
  shmemx_core_t& self = api::valid_core(kCall, core);
  if (const int error = check_flag(self, kCall, SHMEMX_FLAG_ALL, flag); error != 0) {
    return error;
  }
  std::uint32_t& awaited = self.awaited_flags[static_cast<std::size_t>(flag)];
  const Received received(self.flags, self.core.index(), self.core.count(), flag);
  // Wraps around; a core is never 2^31 counts behind.
  const auto has_one = [&](std::uint64_t /*changes*/) {
    return static_cast<std::int32_t>(received.total() - awaited) > 0;
  };
  api::WordMonitor monitor(self.runtime, kCall, &self, [&] {
    return fmt::format("flag {}, of which this core has got {} counts and taken {}", flag, received.total(), awaited);
  });
  const std::errc error = shmem::wait_on(self.flags.changes(flag), self.core.policy(), has_one,
                                         shmem::WatchedCheck(self.core.check(), monitor));
  if (error != std::errc{}) {
    return self.keep(shmem::fail(error, api::said_by(self, kCall) + monitor.explain(error)));
  }
  ++awaited;
  return 0;
}
SHMEM_CATCH(int)
}
