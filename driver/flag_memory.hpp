// SPDX-License-Identifier: Apache-2.0
// Where releases land: lines of memory that the device writes to.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "driver/backend.hpp"
#include "driver/iova.hpp"
#include "driver/mmio.hpp"
#include "driver/result.hpp"

namespace gba {

class FlagPage;

/// A cache line for one membership, mapped for the device until the object goes. Holds a poison value, never an error
/// and never a sequence that anybody reaches, until the device stores to it.
class FlagLine {
 public:
  FlagLine(std::shared_ptr<FlagPage> page, std::size_t index);

  [[nodiscard]] MmioWord<std::uint64_t> word() const { return word_; }
  [[nodiscard]] std::uint64_t iova() const { return iova_; }

 private:
  std::shared_ptr<FlagPage> page_;
  MmioWord<std::uint64_t> word_;
  std::uint64_t iova_;
};

/// Hands out lines, each once: a line that had a member is not given to another one before its whole page has been
/// unmapped, so a late store for an old member reaches nobody (uapi rule 33). Pages hold nothing but flags.
/// Thread-safe. Lines may outlive it, but not the backend and the IOVA space.
class FlagMemory {
 public:
  static constexpr std::size_t kPageSize = 4096;
  static constexpr std::uint64_t kPoison = UINT64_C(0x005a5a5a5a5a5a5a);

  FlagMemory(Backend& backend, IovaSpace& iovas) : backend_(backend), iovas_(iovas) {}

  /// A fresh line.
  Result<FlagLine> take();

 private:
  Backend& backend_;
  IovaSpace& iovas_;

  std::mutex mutex_;  // guards what follows
  std::shared_ptr<FlagPage> page_;
  std::size_t next_ = 0;  // line of page_
};

}  // namespace gba
