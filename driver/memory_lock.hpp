// SPDX-License-Identifier: Apache-2.0
// Memory that a device may write to is pinned, and that counts against RLIMIT_MEMLOCK.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "driver/result.hpp"
#include "driver/system_calls.hpp"

namespace gba {

/// What one device has pinned. Thread-safe.
class MemoryLock {
 public:
  explicit MemoryLock(SystemCalls& system) : system_(system) {}

  /// Counts `bytes` more. Fails with not_enough_memory where the limit does not let the kernel pin them. `tried` begins
  /// the text of the error.
  Result<void> reserve(std::uint64_t bytes, const std::string& tried);
  void release(std::uint64_t bytes);
  /// Why the kernel may have refused to pin `bytes` with ENOMEM, and how to mend it. `others`: whose memory the kernel
  /// adds to the device's.
  [[nodiscard]] std::string advice(std::uint64_t bytes, const std::string& others);

 private:
  [[nodiscard]] std::uint64_t limit() const;

  SystemCalls& system_;
  std::mutex mutex_;          // guards what follows
  std::uint64_t pinned_ = 0;  // bytes
};

}  // namespace gba
