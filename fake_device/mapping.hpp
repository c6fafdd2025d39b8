// SPDX-License-Identifier: Apache-2.0
// Memory that is unmapped with its object.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace fake_device {

class Mapping {
 public:
  Mapping() = default;
  /// Takes over what mmap gave; MAP_FAILED makes an empty mapping.
  Mapping(void* base, std::size_t size) noexcept
      : base_(base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base)), size_(base_ == nullptr ? 0 : size) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base_ != nullptr) {
      ::munmap(base_, size_);
    }
  }

  [[nodiscard]] std::byte* data() const noexcept { return base_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return base_ != nullptr; }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fake_device
