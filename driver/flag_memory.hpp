// SPDX-License-Identifier: Apache-2.0
// Where releases land: lines of memory that the device writes to.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "driver/backend.hpp"
#include "driver/bar_mapping.hpp"
#include "driver/iova.hpp"
#include "driver/mmio.hpp"
#include "driver/result.hpp"

namespace gba {

class FlagPage;

/// A cache line for one membership, the device's to write until the object goes.
class FlagLine {
 public:
  /// A line of `page`, at `address` as the device sees it. `page` may be null: device memory needs no keeping.
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
  kAuto,  // host memory, or the device's where that cannot be had
  kHost,  // host memory, written by DMA
  kBar,   // the device's own memory, BAR4: polled over the bus, but for hosts that give the device no DMA
};

/// Hands out lines. In host memory each once: a line that had a member is not given to another one before its whole
/// page has been unmapped, so a late store for an old member reaches nobody (uapi rule 33). Until the device stores to
/// it a line holds a poison value, never an error and never a sequence that anybody reaches. Pages hold nothing but
/// flags, lie on the device's NUMA node, are locked, and are huge where that helps the device and the system
/// has huge pages to give. In BAR4 a
/// group has one line, which JOIN clears. Thread-safe. Lines may outlive it, but not the backend and the IOVA space.
class FlagMemory {
 public:
  static constexpr std::size_t kPageSize = 4096;
  static constexpr std::uint64_t kPoison = UINT64_C(0x005a5a5a5a5a5a5a);

  /// `page`: the smallest that the IOMMU can map.
  FlagMemory(Backend& backend, IovaSpace& iovas, std::uint64_t page = kPageSize);

  /// Before take(), once. `bar_flags`: the device has them. Fails as mapping memory fails; not_supported if the
  /// device's memory is wanted that it has not.
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
  BarMapping bar_;

  std::mutex mutex_;  // guards what follows
  std::shared_ptr<FlagPage> page_;
  std::size_t next_ = 0;  // line of page_
};

}  // namespace gba
