// SPDX-License-Identifier: Apache-2.0
#include "driver/flag_memory.hpp"

#include <optional>
#include <utility>

#include "uapi/gba_device.h"

namespace gba {

namespace {

constexpr std::size_t kLines = FlagMemory::kPageSize / GBA_FLAG_STRIDE;

}  // namespace

/// A page of lines, mapped here and for the device.
class FlagPage {
 public:
  static Result<std::shared_ptr<FlagPage>> make(Backend& backend, IovaSpace& iovas);

  FlagPage(Backend& backend, IovaSpace& iovas, UniqueFd memory, Mapping mapping)
      : backend_(backend), iovas_(iovas), memory_(std::move(memory)), mapping_(std::move(mapping)) {}
  FlagPage(const FlagPage&) = delete;
  FlagPage& operator=(const FlagPage&) = delete;
  ~FlagPage();

  [[nodiscard]] MmioWord<std::uint64_t> word(std::size_t line) const {
    return MmioRegion(mapping_.bytes()).word<std::uint64_t>(line * GBA_FLAG_STRIDE);
  }
  [[nodiscard]] std::uint64_t iova(std::size_t line) const { return *iova_ + line * GBA_FLAG_STRIDE; }

 private:
  Result<void> show_to_device();

  Backend& backend_;
  IovaSpace& iovas_;
  UniqueFd memory_;
  Mapping mapping_;
  std::optional<std::uint64_t> iova_;  // once the device sees the page
};

Result<std::shared_ptr<FlagPage>> FlagPage::make(Backend& backend, IovaSpace& iovas) {
  auto memory = make_sealed_memory("gba-flags", FlagMemory::kPageSize);
  if (!memory) return tl::make_unexpected(memory.error());
  auto mapping = Mapping::share(memory->get(), 0, FlagMemory::kPageSize, "release flags");
  if (!mapping) return tl::make_unexpected(mapping.error());
  auto page = std::make_shared<FlagPage>(backend, iovas, *std::move(memory), *std::move(mapping));
  for (std::size_t line = 0; line < kLines; ++line) page->word(line).store(FlagMemory::kPoison);
  if (auto shown = page->show_to_device(); !shown) return tl::make_unexpected(shown.error());
  return page;
}

Result<void> FlagPage::show_to_device() {
  const auto iova = iovas_.allocate(mapping_.bytes().size());
  if (!iova) return tl::make_unexpected(iova.error());
  if (auto mapped = backend_.dma_map({.fd = memory_.get(), .memory = mapping_.bytes()}, *iova); !mapped) {
    iovas_.release(*iova);
    return mapped;
  }
  iova_ = *iova;
  return {};
}

FlagPage::~FlagPage() {
  // A range that could not be unmapped is not used again.
  if (iova_ && backend_.dma_unmap(*iova_, mapping_.bytes().size())) iovas_.release(*iova_);
}

FlagLine::FlagLine(std::shared_ptr<FlagPage> page, std::size_t index)
    : page_(std::move(page)), word_(page_->word(index)), iova_(page_->iova(index)) {}

Result<FlagLine> FlagMemory::take() {
  const std::lock_guard lock(mutex_);
  if (page_ == nullptr || next_ == kLines) {
    auto page = FlagPage::make(backend_, iovas_);
    if (!page) return tl::make_unexpected(page.error());
    page_ = *std::move(page);
    next_ = 0;
  }
  return FlagLine(page_, next_++);
}

}  // namespace gba
