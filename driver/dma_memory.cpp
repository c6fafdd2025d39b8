// SPDX-License-Identifier: Apache-2.0
#include "driver/dma_memory.hpp"

#include <linux/capability.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <string>

#include "uapi/gba_device.h"

namespace gba {

std::uint64_t IovaSpace::find(std::uint64_t from, std::uint64_t to, std::uint64_t size) const {
  auto range = used_.upper_bound(from);
  if (range != used_.begin()) {
    const auto before = std::prev(range);
    if (before->second > from) {
      from = before->second;
    }
  }
  while (from < to && to - from >= size) {
    if (range == used_.end() || range->first - from >= size) {
      return from;
    }
    from = range->second;
    ++range;
  }
  return to;
}

Result<std::uint64_t> IovaSpace::allocate(std::uint64_t size) {
  const std::uint64_t whole = (size + page_ - 1) / page_ * page_;
  const std::lock_guard lock(mutex_);
  std::uint64_t found = find(next_, end_, whole);
  if (found == end_) {
    found = find(first_, end_, whole);
  }
  if (found == end_ || whole < size) {
    return fail(std::errc::not_enough_memory, fmt::format("gba: no free range of {} bytes in IOVA space", size));
  }
  used_.emplace(found, found + whole);
  next_ = found + whole;
  return found;
}

Result<IovaWindow> choose_window(const DmaLimits& limits) {
  constexpr std::uint64_t kAboveReserved = UINT64_C(1) << 32;
  constexpr std::uint64_t kDriven = (UINT64_C(1) << GBA_DMA_ADDRESS_BITS) - 1;
  constexpr std::uint64_t kEnough = UINT64_C(1) << 37;
  const std::uint64_t page = limits.page;
  // Above 4 GiB first. Page 0 is skipped, because address 0 often stands for "none".
  for (const std::uint64_t least : {kAboveReserved, page}) {
    for (const IovaRange& range : limits.ranges) {
      const std::uint64_t last = std::min(range.last, kDriven);
      const std::uint64_t wanted = std::max(range.first, least);
      const std::uint64_t first = wanted + (page - wanted % page) % page;
      if (first < wanted || first > last || last - first < page - 1) {
        continue;
      }
      const std::uint64_t rest = last - first;  // one less than its size, which may be 2^64
      return IovaWindow{.first = first, .size = (std::min(rest, kEnough - 1) + 1) / page * page};
    }
  }
  return fail(std::errc::not_enough_memory, "gba: the IOMMU can map no address below 2^40, which the device can reach");
}

Result<std::shared_ptr<IovaSpace>> make_iova_space(const DmaLimits& limits) {
  const auto window = choose_window(limits);
  if (!window) {
    return window.error();
  }
  return std::make_shared<IovaSpace>(window->first, window->size, limits.page);
}

void IovaSpace::release(std::uint64_t iova) {
  const std::lock_guard lock(mutex_);
  used_.erase(iova);
}

namespace {

std::string explain(std::uint64_t bytes, std::uint64_t pinned, std::uint64_t limit) {
  return fmt::format(
      "the limit of locked memory (RLIMIT_MEMLOCK) is {} bytes, the device needs {}{}; raise it: ulimit -l, memlock in "
      "/etc/security/limits.d, LimitMEMLOCK= of a systemd unit",
      limit, bytes, pinned == 0 ? "" : fmt::format(" in addition to the {} that it has already", pinned));
}

}  // namespace

std::uint64_t MemoryLock::limit() const {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  if ((system_.effective_capabilities() >> CAP_IPC_LOCK & 1) != 0) {
    return kNone;
  }
  rlimit limit{};
  // If the limit cannot be read, the kernel decides when it maps.
  if (system_.getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return kNone;
  }
  return limit.rlim_cur;
}

Result<void> MemoryLock::reserve(std::uint64_t bytes, const std::string& tried) {
  const std::uint64_t most = limit();
  const std::lock_guard lock(mutex_);
  if (pinned_ > most || most - pinned_ < bytes) {
    return fail(std::errc::not_enough_memory, fmt::format("{}: {}", tried, explain(bytes, pinned_, most)));
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
  if (most == std::numeric_limits<std::uint64_t>::max()) {
    return "";
  }
  const std::lock_guard lock(mutex_);
  return fmt::format("{}; {} counts too", explain(bytes, pinned_ - bytes, most), others);
}

}  // namespace gba
