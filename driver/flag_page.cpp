// SPDX-License-Identifier: Apache-2.0
#include "driver/flag_page.hpp"

#include <numa.h>
#include <sys/mman.h>

#include <utility>

#include "driver/flag_memory.hpp"

namespace gba {

namespace {

Result<SharedMemory> make_memory(std::size_t size) {
  auto file = make_sealed_memory("gba-flags", size);
  if (!file) return tl::make_unexpected(file.error());
  auto mapping = Mapping::share(file->get(), 0, size, "release flags");
  if (!mapping) return tl::make_unexpected(mapping.error());
  return SharedMemory{.file = *std::move(file), .mapping = *std::move(mapping)};
}

/// One huge page, if the system keeps some and has one left: mapping it reserves it.
Result<SharedMemory> make_huge_memory() {
  auto file = make_sealed_huge_page("gba-flags");
  if (!file) return tl::make_unexpected(file.error());
  auto mapping = Mapping::share(file->fd.get(), 0, file->size, "release flags in a huge page");
  if (!mapping) return tl::make_unexpected(mapping.error());
  return SharedMemory{.file = std::move(file->fd), .mapping = *std::move(mapping)};
}

}  // namespace

Result<std::shared_ptr<FlagPage>> FlagPage::make(Backend& backend, IovaSpace& iovas, std::size_t size) {
  if (backend.behind_iommu()) {
    // It may be more than this process may lock, where a small page is not.
    if (auto huge = make_of(make_huge_memory(), backend, iovas)) return huge;
  }
  return make_of(make_memory(size), backend, iovas);
}

Result<std::shared_ptr<FlagPage>> FlagPage::make_of(Result<SharedMemory> memory, Backend& backend, IovaSpace& iovas) {
  if (!memory) return tl::make_unexpected(memory.error());
  auto page = std::make_shared<FlagPage>(backend, iovas, std::move(memory->file), std::move(memory->mapping));
  page->settle();
  if (auto shown = page->show_to_device(); !shown) return tl::make_unexpected(shown.error());
  return page;
}

/// Puts the memory where it belongs, before and by touching it. That a place near the device is not to be had costs
/// speed, and is no reason to fail.
void FlagPage::settle() {
  const auto bytes = mapping_.bytes();
  if (const int node = backend_.numa_node(); node >= 0 && ::numa_available() >= 0) {
    ::numa_tonode_memory(bytes.data(), bytes.size(), node);
  }
  for (std::size_t line = 0; line < lines(); ++line) word(line).store(FlagMemory::kPoison);
}

Result<void> FlagPage::show_to_device() {
  const auto iova = iovas_.allocate(mapping_.bytes().size());
  if (!iova) return tl::make_unexpected(iova.error());
  if (auto mapped = backend_.dma_map({.fd = memory_.get(), .memory = mapping_.bytes()}, *iova); !mapped) {
    iovas_.release(*iova);
    return mapped;
  }
  iova_ = *iova;
  // Not before: what is locked counts, like what the kernel pins for the device, and is not needed. Where nothing more
  // may be locked that costs speed, and is no reason to fail.
  ::mlock(mapping_.bytes().data(), mapping_.bytes().size());
  return {};
}

FlagPage::~FlagPage() {
  // A range that could not be unmapped is not used again.
  if (iova_ && backend_.dma_unmap(*iova_, mapping_.bytes().size())) iovas_.release(*iova_);
}

}  // namespace gba
