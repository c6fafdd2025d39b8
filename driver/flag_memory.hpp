// SPDX-License-Identifier: Apache-2.0
// Where releases land: lines of memory that the device writes to.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/memfd.hpp"
#include "driver/backend.hpp"
#include "driver/bar_mapping.hpp"
#include "driver/dma_memory.hpp"
#include "driver/mmio.hpp"
#include "driver/process_hooks.hpp"
#include "driver/result.hpp"
#include "uapi/gba_device.h"

namespace gba {

struct SharedMemory {
  base::UniqueFd file;
  base::Mapping mapping;
};

/// Mapped here and for the device. Thread-safe.
class FlagPage {
 public:
  /// `size` bytes; with kHuge a huge page, if the device is behind an IOMMU and there is one. Every line is poisoned
  /// before the device sees it.
  static Result<std::shared_ptr<FlagPage>> make(Backend& backend, IovaSpace& iovas, std::size_t size,
                                                base::MemfdPages pages);

  FlagPage(Backend& backend, IovaSpace& iovas, base::UniqueFd memory, base::Mapping mapping)
      : backend_(backend), iovas_(iovas), memory_(std::move(memory)), mapping_(std::move(mapping)) {}
  FlagPage(const FlagPage&) = delete;
  FlagPage& operator=(const FlagPage&) = delete;
  ~FlagPage();

  [[nodiscard]] std::size_t lines() const { return mapping_.bytes().size() / GBA_FLAG_STRIDE; }
  [[nodiscard]] MmioWord<std::uint64_t> word(std::size_t line) const {
    return MmioRegion(mapping_.bytes()).word<std::uint64_t>(line * GBA_FLAG_STRIDE);
  }
  [[nodiscard]] std::uint64_t iova(std::size_t line) const { return *iova_ + line * GBA_FLAG_STRIDE; }

 private:
  static Result<std::shared_ptr<FlagPage>> make_of(Result<SharedMemory> memory, Backend& backend, IovaSpace& iovas);
  Result<void> show_to_device();

  Backend& backend_;
  IovaSpace& iovas_;
  base::UniqueFd memory_;
  base::Mapping mapping_;
  MemoryEntry entry_;                  // a forked child is not released with its parent
  std::optional<std::uint64_t> iova_;  // once the device sees the page
};

class FlagPage;

/// A cache line for one membership. The device may write it until the object is destroyed.
class FlagLine {
 public:
  /// A line of `page`, at `address` as the device sees it. `page` is null for device memory, which needs no owner.
  FlagLine(std::shared_ptr<FlagPage> page, MmioWord<std::uint64_t> word, std::uint64_t address)
      : page_(std::move(page)), word_(word), address_(address) {}

  [[nodiscard]] MmioWord<std::uint64_t> word() const { return word_; }
  /// What RELEASE_ADDR must hold: an IOVA, or BAR_FLAGS.
  [[nodiscard]] std::uint64_t address() const { return address_; }

 private:
  std::shared_ptr<FlagPage> page_;
  MmioWord<std::uint64_t> word_;
  std::uint64_t address_;
};

enum class FlagPlace {
  kAuto,      // host memory, or the device's if the host gives the device no DMA
  kHost,      // host memory, written by DMA
  kBar,       // the device's own memory, BAR4: polled over the bus
  kHugeHost,  // as kHost, in a huge page if there is one
};

/// Hands out lines. A line in host memory is handed out once: no other member gets it before its whole page has been
/// unmapped, so a late store for an old member reaches no new one (uapi rule 33). Until the device stores to it, a line
/// holds a poison value, which is neither an error nor a sequence that a group reaches. Pages hold nothing but flags,
/// lie on the device's NUMA node if it has memory left, and are locked. In BAR4 a group has one line, which JOIN
/// clears. Thread-safe. Lines may outlive it, but not the backend and the IOVA space.
class FlagMemory {
 public:
  static constexpr std::size_t kPageSize = 4096;
  static constexpr std::uint64_t kPoison = UINT64_C(0x005a5a5a5a5a5a5a);

  /// `page`: the smallest that the IOMMU can map.
  FlagMemory(Backend& backend, IovaSpace& iovas, std::uint64_t page = kPageSize);

  /// Before take(), once. `bar_flags`: the device has them. Fails as mapping memory fails; not_supported if the
  /// device's memory is wanted and it has none.
  Result<void> choose(FlagPlace wanted, bool bar_flags);
  /// kHost or kBar.
  [[nodiscard]] FlagPlace place() const { return bar_ ? FlagPlace::kBar : FlagPlace::kHost; }

  /// A fresh line for a membership of `group`.
  Result<FlagLine> take(std::uint32_t group);

 private:
  Result<void> choose_host();
  Result<void> choose_bar(bool bar_flags);

  Backend& backend_;
  IovaSpace& iovas_;
  const std::size_t page_size_;
  base::MemfdPages pages_ = base::MemfdPages::kUsual;  // fixed by choose()
  BarMapping bar_;

  ForkMutex mutex_;  // guards what follows
  std::shared_ptr<FlagPage> page_;
  std::size_t next_ = 0;  // line of page_
};

}  // namespace gba
