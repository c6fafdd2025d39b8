// SPDX-License-Identifier: Apache-2.0
// A page of release flags in host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "driver/backend.hpp"
#include "driver/iova.hpp"
#include "driver/mmio.hpp"
#include "driver/result.hpp"
#include "uapi/gba_device.h"

namespace gba {

struct SharedMemory {
  UniqueFd file;
  Mapping mapping;
};

/// Mapped here and for the device. Thread-safe.
class FlagPage {
 public:
  /// A huge page if that helps the device and there is one, else `size` bytes. Every line is poisoned before the device
  /// sees it.
  static Result<std::shared_ptr<FlagPage>> make(Backend& backend, IovaSpace& iovas, std::size_t size);

  FlagPage(Backend& backend, IovaSpace& iovas, UniqueFd memory, Mapping mapping)
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
  void settle();
  Result<void> show_to_device();

  Backend& backend_;
  IovaSpace& iovas_;
  UniqueFd memory_;
  Mapping mapping_;
  std::optional<std::uint64_t> iova_;  // once the device sees the page
};

}  // namespace gba
