// SPDX-License-Identifier: Apache-2.0
// The caches of this PE, in symmetric memory.
#pragma once

#include "shmem/kv/program/contents.hpp"
#include "shmem/kv/program/world.hpp"

namespace kv_program {

/// Made and ended collectively.
class Caches {
 public:
  explicit Caches(const Shape& shape)
      : shape_(shape),
        k_(static_cast<std::size_t>(shape.bytes_of_object())),
        v_(shape.is_apart() ? static_cast<std::size_t>(shape.bytes_of_object()) : 0) {}
  /// False, on all PEs, if there is not so much memory.
  [[nodiscard]] bool there() const { return k_.get() != nullptr && (!shape_.is_apart() || v_.get() != nullptr); }

  /// With what this PE's blocks hold at first.
  void fill() const {
    for_each_part([this](Part part) {
      for (std::int64_t i = 0; i < shape_.blocks; ++i) {
        fill_part(bytes(part, i), {shmem_my_pe(), i}, part);
      }
    });
  }

  /// That part of a block of this PE.
  [[nodiscard]] std::span<std::byte> bytes(Part part, std::int64_t block) const {
    std::byte* object = shape_.is_apart() && part.cache == Cache::kV ? v() : k();
    return {object + shape_.offset(part, block), static_cast<std::size_t>(shape_.bytes_of_part())};
  }
  template <typename Do>
  void for_each_part(const Do& work) const {
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      work(Part{layer, Cache::kK});
      if (shape_.caches() == 2) {
        work(Part{layer, Cache::kV});
      }
    }
  }

  /// nullptr but if K and V are apart.
  [[nodiscard]] std::byte* v() const { return v_.get(); }
  [[nodiscard]] std::byte* k() const { return k_.get(); }
  [[nodiscard]] const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
  SymmetricMemory k_, v_;
};

}  // namespace kv_program
