// SPDX-License-Identifier: Apache-2.0
// VFIO's INFO calls: answers that grow, with a chain of capabilities behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "driver/system_calls.hpp"

namespace gba {

/// What the kernel answered: the struct and all that comes behind it.
class VfioInfo {
 public:
  explicit VfioInfo(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  [[nodiscard]] T head() const {
    return *at<T>(bytes_, 0);
  }
  /// The body of capability `id`, from its header on, in the chain that begins at `offset`; empty if there is none.
  [[nodiscard]] std::span<const std::byte> capability(std::uint32_t offset, std::uint16_t id) const;

  /// The struct at `offset` of `bytes`, if it lies within them.
  template <typename T>
  static std::optional<T> at(std::span<const std::byte> bytes, std::size_t offset) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Makes the call with as much room as the kernel asks for. Nothing: it failed, and errno says how. REQUIRES: `asked`
/// has argsz as its first member.
std::optional<VfioInfo> vfio_info(SystemCalls& system, int fd, unsigned long request, std::span<const std::byte> asked);

}  // namespace gba
