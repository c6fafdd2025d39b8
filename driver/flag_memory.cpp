// SPDX-License-Identifier: Apache-2.0
#include "driver/flag_memory.hpp"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/memfd.hpp"
#include "uapi/gba_regs.h"

namespace gba {

namespace {

/// Asks for memory of the NUMA node `node`. If none is available there, flags are slower, which is no reason to fail:
/// the policy is a preference, and a refusal (a cpuset without the node) is ignored.
void prefer_node(std::span<std::byte> memory, int node) {
  constexpr unsigned kBits = 64;
  std::array<std::uint64_t, 16> nodes{};
  if (node < 0 || static_cast<unsigned>(node) >= kBits * nodes.size()) {
    return;
  }
  nodes[static_cast<unsigned>(node) / kBits] = UINT64_C(1) << (static_cast<unsigned>(node) % kBits);
  // The kernel reads one bit less than it is told.
  ::syscall(SYS_mbind, memory.data(), memory.size(), MPOL_PREFERRED, nodes.data(), kBits * nodes.size() + 1, 0);
}

/// Allocates all of the file. Pages that the kernel cannot give (the limit of a hugetlb control group is checked only
/// when a page is allocated) are an error here; touching them would raise SIGBUS.
Result<void> allocate(int file, std::size_t size) {
  const int result = base::retry([&] { return ::fallocate(file, 0, 0, static_cast<off_t>(size)); });
  if (result != 0) {
    return fail_errno(errno, fmt::format("gba: cannot allocate {} bytes for release flags", size));
  }
  return {};
}

Result<SharedMemory> make_memory(std::size_t size, base::MemfdPages pages, int node) {
  auto file = base::create_memfd("gba-flags", size, pages, base::MemfdSeals::kOpen);
  if (!file) {
    return fail(file.error().code, "gba: " + file.error().text);
  }
  auto mapping = map_shared(file->get(), 0, size, "release flags");
  if (!mapping) {
    return mapping.error();
  }
  prefer_node(mapping->bytes(), node);
  if (auto allocated = allocate(file->get(), size); !allocated) {
    return allocated.error();
  }
  return SharedMemory{.file = *std::move(file), .mapping = *std::move(mapping)};
}

}  // namespace

Result<std::shared_ptr<FlagPage>> FlagPage::make(Backend& backend, IovaSpace& iovas, std::size_t size,
                                                 base::MemfdPages pages) {
  const int node = backend.numa_node();
  if (pages == base::MemfdPages::kHuge && backend.behind_iommu()) {
    // There may be no huge page, or it may exceed the limit of locked memory.
    if (auto huge = make_of(make_memory(base::kHugePageSize, pages, node), backend, iovas)) {
      return huge;
    }
  }
  return make_of(make_memory(size, base::MemfdPages::kUsual, node), backend, iovas);
}

Result<std::shared_ptr<FlagPage>> FlagPage::make_of(Result<SharedMemory> memory, Backend& backend, IovaSpace& iovas) {
  if (!memory) {
    return memory.error();
  }
  auto page = std::make_shared<FlagPage>(backend, iovas, std::move(memory->file), std::move(memory->mapping));
  page->entry_ = MemoryEntry(backend, page->mapping_.bytes(), MemoryEntry::Kind::kHost);
  if (!page->entry_) {
    return fail(std::errc::too_many_files_open,
                fmt::format("gba: {}: more than {} device regions and flag pages are mapped", backend.path(),
                            MemoryEntry::kMost));
  }
  for (std::size_t line = 0; line < page->lines(); ++line) {
    page->word(line).store(FlagMemory::kPoison);
  }
  if (auto shown = page->show_to_device(); !shown) {
    return shown.error();
  }
  return page;
}

Result<void> FlagPage::show_to_device() {
  const auto iova = iovas_.allocate(mapping_.bytes().size());
  if (!iova) {
    return iova.error();
  }
  if (auto mapped = backend_.dma_map({.fd = memory_.get(), .memory = mapping_.bytes()}, *iova); !mapped) {
    iovas_.release(*iova);
    return mapped;
  }
  iova_ = *iova;
  // A device that is a process stores directly only into memory that cannot be taken away. Hardware ignores the seals.
  [[maybe_unused]] const auto kept = base::keep_pages(memory_.get());
  // Not before: locked memory counts like memory that the kernel pins for the device. If no more may be locked, flags
  // are slower, which is no reason to fail.
  ::mlock(mapping_.bytes().data(), mapping_.bytes().size());
  return {};
}

FlagPage::~FlagPage() {
  // A range that could not be unmapped is not used again.
  if (iova_ && backend_.dma_unmap(*iova_, mapping_.bytes().size())) {
    iovas_.release(*iova_);
  }
}

FlagMemory::FlagMemory(Backend& backend, IovaSpace& iovas, std::uint64_t page)
    : backend_(backend), iovas_(iovas), page_size_(std::max<std::size_t>(kPageSize, page)) {}

Result<void> FlagMemory::choose(FlagPlace wanted, bool bar_flags) {
  if (wanted == FlagPlace::kBar) {
    return choose_bar(bar_flags);
  }
  pages_ = wanted == FlagPlace::kHugeHost ? base::MemfdPages::kHuge : base::MemfdPages::kUsual;
  auto host = choose_host();
  if (host || wanted != FlagPlace::kAuto || backend_.lost() || !choose_bar(bar_flags)) {
    return host;
  }
  return {};
}

Result<void> FlagMemory::choose_host() {
  auto page = FlagPage::make(backend_, iovas_, page_size_, pages_);
  if (!page) {
    return page.error();
  }
  page_ = *std::move(page);
  return {};
}

Result<void> FlagMemory::choose_bar(bool bar_flags) {
  const auto info = backend_.region_info(GBA_REGION_FLAGS);
  if (!info) {
    return info.error();
  }
  if (!bar_flags || info->size < GBA_BAR4_SIZE || !info->mappable) {
    return fail(
        std::errc::not_supported,
        fmt::format(
            "gba: cannot open {}: release flags in device memory are wanted, and it has none that can be mapped",
            backend_.path()));
  }
  auto mapping = BarMapping::make(backend_, GBA_REGION_FLAGS, GBA_BAR4_SIZE);
  if (!mapping) {
    return mapping.error();
  }
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
    auto page = FlagPage::make(backend_, iovas_, page_size_, pages_);
    if (!page) {
      return page.error();
    }
    page_ = *std::move(page);
    next_ = 0;
  }
  const std::size_t line = next_++;
  return FlagLine(page_, page_->word(line), page_->iova(line));
}

}  // namespace gba
