// SPDX-License-Identifier: Apache-2.0
// Where the parts of a block lie in a cache: the program's own idea of that, which --check holds against libshmem's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kv_program {

/// SHMEMX_KV_APART and so on.
enum class Format : std::int32_t { kApart, kByLayer, kInterleaved, kByBlock, kLatent };
/// "apart", "by-layer", "interleaved", "by-block", "latent".
const char* name_of(Format format);
std::optional<Format> format_of(const std::string& name);

enum class Cache { kK, kV };

/// Part of a block: that of one layer, of K or of V.
struct Part {
  std::int64_t layer;
  Cache cache;
};

struct Shape {
  Format format = Format::kApart;
  std::int32_t element_size = 1;
  std::int64_t layers = 1;
  std::int64_t blocks = 0;
  std::int64_t kv_heads = 8;
  std::int64_t page_size = 64;
  std::int64_t head_dim = 128;

  /// K, or K and V.
  [[nodiscard]] constexpr std::int64_t caches() const { return format == Format::kLatent ? 1 : 2; }
  /// One block of one layer of K.
  [[nodiscard]] constexpr std::int64_t bytes_of_part() const { return kv_heads * page_size * head_dim * element_size; }
  /// A block of all layers, K and V.
  [[nodiscard]] constexpr std::int64_t bytes_of_block() const { return layers * caches() * bytes_of_part(); }
  [[nodiscard]] constexpr std::int64_t bytes() const { return blocks * bytes_of_block(); }
  /// K and V are two objects, or one.
  [[nodiscard]] constexpr bool is_apart() const { return format == Format::kApart; }
  /// Of the object that K is in, and, if there are two, V's is as large.
  [[nodiscard]] constexpr std::int64_t bytes_of_object() const { return is_apart() ? bytes() / 2 : bytes(); }
  /// Where a part of block `block` begins, in its object.
  [[nodiscard]] std::int64_t offset(Part part, std::int64_t block) const;
};

/// "layer 3 of the K cache".
std::string name_of(Part part);

}  // namespace kv_program
