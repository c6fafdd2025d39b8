// SPDX-License-Identifier: Apache-2.0
#include "driver/memory_lock.hpp"

#include <linux/capability.h>
#include <sys/resource.h>

#include <limits>

namespace gba {

namespace {

std::string explain(std::uint64_t bytes, std::uint64_t pinned, std::uint64_t limit) {
  const std::string whose = pinned == 0 ? "" : " beside the " + std::to_string(pinned) + " that it has already";
  return "the limit of locked memory (RLIMIT_MEMLOCK) is " + std::to_string(limit) + " bytes, the device needs " +
         std::to_string(bytes) + whose +
         "; raise it: ulimit -l, memlock in /etc/security/limits.d, LimitMEMLOCK= of a " + "systemd unit";
}

}  // namespace

std::uint64_t MemoryLock::limit() const {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  if ((system_.effective_capabilities() >> CAP_IPC_LOCK & 1) != 0) return kNone;
  rlimit limit{};
  // Where it cannot be asked for, the kernel decides when it maps.
  if (system_.getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNone;
  return limit.rlim_cur;
}

Result<void> MemoryLock::reserve(std::uint64_t bytes, const std::string& tried) {
  const std::uint64_t most = limit();
  const std::lock_guard lock(mutex_);
  if (pinned_ > most || most - pinned_ < bytes) {
    return fail(std::errc::not_enough_memory, tried + ": " + explain(bytes, pinned_, most));
  }
  pinned_ += bytes;
  return {};
}

void MemoryLock::release(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  pinned_ -= bytes;
}

std::string MemoryLock::advice(std::uint64_t bytes, const std::string& others) {
  const std::uint64_t most = limit();
  if (most == std::numeric_limits<std::uint64_t>::max()) return "";
  const std::lock_guard lock(mutex_);
  return explain(bytes, pinned_ - bytes, most) + "; " + others + " counts too";
}

}  // namespace gba
