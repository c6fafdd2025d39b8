// SPDX-License-Identifier: Apache-2.0
// Stands for the data segments of a program. The test's own segments cannot be moved: they hold the variables of the
// code under test.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <vector>

#include "shmem/memory/global_segments.hpp"

namespace shmem_test {

/// Two ranges of private memory, zero at first; only the first page of each is "initialized".
class PrivateData {
 public:
  static constexpr std::size_t kPage = 4096;

  explicit PrivateData(std::size_t pages = 4) {
    for (int i = 0; i < 2; ++i) {
      void* data = ::mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ranges_.push_back({static_cast<std::byte*>(data), pages * kPage, kPage});
    }
  }
  PrivateData(const PrivateData&) = delete;
  PrivateData& operator=(const PrivateData&) = delete;
  ~PrivateData() {
    for (const auto& range : ranges_) {
      ::munmap(range.begin, range.size);
    }
  }

  [[nodiscard]] const std::vector<shmem::GlobalRange>& ranges() const { return ranges_; }
  [[nodiscard]] std::size_t size() const { return 2 * ranges_[0].size; }
  /// The i-th word of a range; volatile, because another process may change it.
  [[nodiscard]] volatile std::uint64_t& word(std::size_t range, std::size_t i) const {
    return reinterpret_cast<volatile std::uint64_t*>(ranges_[range].begin)[i];
  }

 private:
  std::vector<shmem::GlobalRange> ranges_;
};

}  // namespace shmem_test
