// SPDX-License-Identifier: Apache-2.0
// A number that says whether two PEs mean the same: equal for equal data, and for other data as good as never.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shmem::kv {

class Digest {
 public:
  void add(const void* data, std::size_t size);
  void add(std::int64_t number) { add(&number, sizeof number); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace shmem::kv
