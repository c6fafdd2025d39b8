// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/memory.hpp"

#include "shmemx.h"

namespace kv_program {
namespace {

/// For what the program and the operator need beside the caches.
constexpr std::int64_t kBeside = std::int64_t{2} << 20;

std::string mebibytes(std::int64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + "M";
}

}  // namespace

std::string too_large(const Shape& shape) {
  shmemx_heap_stats_t heap{};
  shmemx_heap_stats(&heap);
  const auto free = static_cast<std::int64_t>(heap.largest_free);
  if (shape.bytes() <= free) {
    return "";
  }
  const std::int64_t fit = (free - kBeside) / shape.bytes_of_block();
  return "the caches of each PE take " + std::to_string(shape.bytes()) + " bytes (" + std::to_string(shape.blocks) +
         " blocks of " + std::to_string(shape.bytes_of_block()) + ", all layers), and its symmetric heap has " +
         std::to_string(free) + " free: set SHMEM_SYMMETRIC_SIZE=" + mebibytes(shape.bytes() + kBeside) + " or more" +
         (fit >= 2 ? ", or take --blocks " + std::to_string(fit) + " or fewer" : "");
}

}  // namespace kv_program
