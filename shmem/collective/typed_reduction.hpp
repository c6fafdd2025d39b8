// SPDX-License-Identifier: Apache-2.0
// Reductions chosen at run time: by an element type and an operation, as torch.distributed names them.
#pragma once

#include <cstdint>
#include <optional>

#include "shmem/collective/reduce.hpp"

namespace shmem {

enum class ElementType : std::int32_t {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kBytes
};
enum class ElementOperation : std::int32_t { kSum, kAverage, kProduct, kMinimum, kMaximum, kAnd, kOr, kXor };

const char* name_of(ElementType type);
const char* name_of(ElementOperation operation);

/// Operations of 16-bit floating-point types compute in 32 bits and round each result to nearest even.
struct TypedReduction {
  Reduction reduction{};
  /// For averages: divides what all members have summed up. nullptr: nothing is left to do.
  void (*finish)(void* elements, std::size_t count, int members) = nullptr;
  /// The end of a combination of all members' elements.
  void complete(void* elements, std::size_t bytes, int members) const {
    if (finish != nullptr) {
      finish(elements, bytes / reduction.element, members);
    }
  }
};
/// Nothing if there is no such operation on that type, such as a bitwise one on floating-point numbers.
std::optional<TypedReduction> typed_reduction(ElementType type, ElementOperation operation);

}  // namespace shmem
