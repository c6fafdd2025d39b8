// SPDX-License-Identifier: Apache-2.0
// Memory mapped from a file or a device, and files made to be mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "driver/fd.hpp"
#include "driver/result.hpp"
#include "driver/system_calls.hpp"

namespace gba {

/// Owns a mapping, or none (bytes() is empty). Not thread-safe; the memory may be used by anybody while this lives.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Mapping(Mapping&& other) noexcept : system_(other.system_), bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(system_, other.system_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  /// `size` bytes of `fd` from `offset`, shared, readable and writable, left out of core dumps. `what` names them in
  /// an error. `fd` may be closed afterwards. `system` outlives the mapping.
  static Result<Mapping> share(int fd, std::uint64_t offset, std::size_t size, const std::string& what,
                               SystemCalls& system = real_system_calls());

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  explicit operator bool() const { return !bytes_.empty(); }

 private:
  Mapping(SystemCalls& system, std::span<std::byte> bytes) : system_(&system), bytes_(bytes) {}

  SystemCalls* system_ = nullptr;
  std::span<std::byte> bytes_;
};

/// An anonymous file of `size` zero bytes whose size cannot change any more: whoever maps it cannot be hurt by us.
Result<UniqueFd> make_sealed_memory(const char* name, std::size_t size);

/// The same of one huge page. Fails where there are none; a page is there once it has been mapped.
struct HugePage {
  UniqueFd fd;
  std::size_t size;
};
Result<HugePage> make_sealed_huge_page(const char* name);

}  // namespace gba
