// SPDX-License-Identifier: Apache-2.0
// The KV caches of this PE: their shape, their contents, and what they must contain after the shuffles. --check
// compares this independent view of the layout with libshmem's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shmemx.h"
#include "tools/kv_shuffle/world.hpp"

namespace kv_program {

/// The values of SHMEMX_KV_APART, ...
enum class Format : std::int32_t { kApart, kByLayer, kInterleaved, kByBlock, kLatent };
/// "apart", "by-layer", "interleaved", "by-block", "latent".
const char* name_of(Format format);
std::optional<Format> format_of(const std::string& name);

enum class Cache { kK, kV };

/// Part of a block: one layer of K or of V.
struct Part {
  std::int64_t layer;
  Cache cache;
};
/// "layer 3 of the K cache".
std::string name_of(Part part);

struct Shape {
  Format format = Format::kApart;
  std::int32_t element_size = 1;
  std::int64_t layers = 1;
  std::int64_t blocks = 0;
  std::int64_t kv_heads = 8;
  std::int64_t page_size = 64;
  std::int64_t head_dim = 128;

  /// 1 for K alone, 2 for K and V.
  [[nodiscard]] constexpr std::int64_t caches() const { return format == Format::kLatent ? 1 : 2; }
  /// One block of one layer of K.
  [[nodiscard]] constexpr std::int64_t bytes_of_part() const { return kv_heads * page_size * head_dim * element_size; }
  /// A block of all layers, K and V.
  [[nodiscard]] constexpr std::int64_t bytes_of_block() const { return layers * caches() * bytes_of_part(); }
  [[nodiscard]] constexpr std::int64_t bytes() const { return blocks * bytes_of_block(); }
  /// K and V are separate objects.
  [[nodiscard]] constexpr bool is_apart() const { return format == Format::kApart; }
  /// The object that holds K; V's object, if there is one, has the same size.
  [[nodiscard]] constexpr std::int64_t bytes_of_object() const { return is_apart() ? bytes() / 2 : bytes(); }
  /// Where a part of block `block` begins in its object.
  [[nodiscard]] std::int64_t offset(Part part, std::int64_t block) const;
};

/// Why caches of this shape do not fit into the symmetric heap, and what to do; or "".
std::string too_large(const Shape& shape);

// ---- --model and --dtype ----

/// The bytes of an element of `dtype`, under the names that frameworks use; nothing for an unknown name.
std::optional<std::int32_t> element_size_of(const std::string& dtype);
/// All known names, for messages.
std::string dtype_names();

struct Model {
  const char* name = "";
  Shape shape{};  // all layers; without blocks, whose number depends on the memory
  const char* dtype = "";
  const char* source = "";  // where its numbers are published
};

/// By name, in upper or lower case; nullptr for an unknown model.
const Model* find_model(const std::string& name);
/// A table of all models.
std::string list_models();

// ---- Contents ----

/// A block of a PE.
struct BlockName {
  int pe;
  std::int64_t block;

  friend bool operator==(const BlockName&, const BlockName&) = default;
};
/// The name of a cleared block.
constexpr BlockName kZeros{-1, 0};

/// Fills `bytes` with the initial contents of that part of that block: different for each part of each block of each
/// PE, and computed, not stored.
void fill_part(std::span<std::byte> bytes, BlockName name, Part part);

/// The caches of this PE, in symmetric memory. Construction and destruction are collective.
class Caches {
 public:
  explicit Caches(const Shape& shape)
      : shape_(shape),
        k_(static_cast<std::size_t>(shape.bytes_of_object())),
        v_(shape.is_apart() ? static_cast<std::size_t>(shape.bytes_of_object()) : 0) {}
  /// False on all PEs if there is not enough memory.
  [[nodiscard]] bool ok() const { return k_.get() != nullptr && (!shape_.is_apart() || v_.get() != nullptr); }

  /// Writes the initial contents of this PE's blocks.
  void fill() const;

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

  /// nullptr unless K and V are apart.
  [[nodiscard]] std::byte* v() const { return v_.get(); }
  [[nodiscard]] std::byte* k() const { return k_.get(); }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// The description that libshmem takes.
  [[nodiscard]] shmemx_kv_cache_t description() const;

 private:
  Shape shape_;
  SymmetricMemory k_, v_;
};

/// Records for each block of each PE which initial block it contains now. Contents are computed again for the
/// comparison, so this needs little memory whatever the size of the caches.
class Expected {
 public:
  Expected(int pes, std::int64_t blocks);

  /// One shuffle: each destination gets what its source held before. With `clears`, sources that are not a destination
  /// become zeros.
  void apply(std::span<const shmemx_kv_move_t> moves, bool clears);

  /// The initial block that block `block` of PE `pe` contains now.
  [[nodiscard]] BlockName at(std::int64_t pe, std::int64_t block) const {
    return now_.at(static_cast<std::size_t>(pe)).at(static_cast<std::size_t>(block));
  }

  /// Compares every byte of this PE's caches. Returns the first difference, or "".
  [[nodiscard]] std::string compare(const Caches& caches) const;

 private:
  [[nodiscard]] std::string compare_part(const Caches& caches, Part part, std::int64_t block,
                                         std::span<std::byte> right) const;

  std::vector<std::vector<BlockName>> now_;  // [pe][block]
};

}  // namespace kv_program
