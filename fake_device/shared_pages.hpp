// SPDX-License-Identifier: Apache-2.0
// Device memory that a client may map: a BAR.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fake_device/mapping.hpp"
#include "fake_device/result.hpp"
#include "fake_device/unique_fd.hpp"

namespace fake_device {

/// A zeroed memfd of fixed size, mapped. It is sealed, so whoever gets its descriptor can neither shrink it (which
/// would be a SIGBUS here) nor grow it. The memory is shared with other processes: atomics only.
class SharedPages {
 public:
  static Result<SharedPages> create(const char* name, std::size_t size);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::size_t size() const { return pages_.size(); }
  [[nodiscard]] std::byte* data() const { return pages_.data(); }

  /// REQUIRES: offset is a multiple of sizeof(T), and offset + sizeof(T) <= size().
  template <typename T>
  [[nodiscard]] std::atomic<T>* at(std::size_t offset) const {
    static_assert(sizeof(std::atomic<T>) == sizeof(T) && std::atomic<T>::is_always_lock_free);
    return reinterpret_cast<std::atomic<T>*>(pages_.data() + offset);
  }

 private:
  SharedPages(UniqueFd fd, Mapping pages) : fd_(std::move(fd)), pages_(std::move(pages)) {}

  UniqueFd fd_;
  Mapping pages_;
};

}  // namespace fake_device
