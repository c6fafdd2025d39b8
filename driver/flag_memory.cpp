// SPDX-License-Identifier: Apache-2.0
#include "driver/flag_memory.hpp"

#include <algorithm>
#include <utility>

#include "driver/flag_page.hpp"
#include "uapi/gba_regs.h"

namespace gba {

FlagMemory::FlagMemory(Backend& backend, IovaSpace& iovas, std::uint64_t page)
    : backend_(backend), iovas_(iovas), page_size_(std::max<std::size_t>(kPageSize, page)) {}

Result<void> FlagMemory::choose(FlagPlace wanted, bool bar_flags) {
  if (wanted == FlagPlace::kBar) return choose_bar(bar_flags);
  auto host = choose_host();
  if (host || wanted == FlagPlace::kHost || backend_.lost() || !choose_bar(bar_flags)) return host;
  return {};
}

Result<void> FlagMemory::choose_host() {
  auto page = FlagPage::make(backend_, iovas_, page_size_);
  if (!page) return tl::make_unexpected(page.error());
  page_ = *std::move(page);
  return {};
}

Result<void> FlagMemory::choose_bar(bool bar_flags) {
  const auto info = backend_.region_info(GBA_REGION_FLAGS);
  if (!info) return tl::make_unexpected(info.error());
  if (!bar_flags || info->size < GBA_BAR4_SIZE || !info->mappable) {
    return fail(std::errc::not_supported,
                "gba: cannot open " + backend_.path() +
                    ": release flags in device memory are wanted, and it has none that can be mapped");
  }
  auto mapping = BarMapping::make(backend_, GBA_REGION_FLAGS);
  if (!mapping) return tl::make_unexpected(mapping.error());
  bar_ = *std::move(mapping);
  return {};
}

Result<FlagLine> FlagMemory::take(std::uint32_t group) {
  if (bar_) {
    const auto word = MmioRegion(bar_.bytes()).word<std::uint64_t>(std::uint64_t{group} * GBA_FLAG_STRIDE);
    return FlagLine(nullptr, word, GBA_RELEASE_ADDR_BAR_FLAGS);
  }
  const std::lock_guard lock(mutex_);
  if (page_ == nullptr || next_ == page_->lines()) {
    auto page = FlagPage::make(backend_, iovas_, page_size_);
    if (!page) return tl::make_unexpected(page.error());
    page_ = *std::move(page);
    next_ = 0;
  }
  const std::size_t line = next_++;
  return FlagLine(page_, page_->word(line), page_->iova(line));
}

}  // namespace gba
