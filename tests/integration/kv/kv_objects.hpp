// SPDX-License-Identifier: Apache-2.0
// For PEs under test: the library's plans and caches, made from those of the model.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "shmem.h"
#include "shmemx.h"
#include "tests/integration/kv/kv_model.hpp"

namespace kv_test {

/// Prints what is wrong and ends the job.
[[noreturn]] inline void give_up(const std::string& what) {
  std::fprintf(stderr, "PE %d: WRONG: %s\n", shmem_my_pe(), what.c_str());
  shmem_global_exit(1);
  std::abort();
}

struct DestroyPlan {
  void operator()(shmemx_kv_plan_t* plan) const { shmemx_kv_plan_destroy(plan); }
};
using Plan = std::unique_ptr<shmemx_kv_plan_t, DestroyPlan>;

inline Plan make_plan(const std::vector<shmemx_kv_move_t>& moves, int mode) {
  shmemx_kv_plan_t* plan = nullptr;
  if (shmemx_kv_plan_create(moves.data(), moves.size(), mode, &plan) != 0) {
    give_up(shmemx_error_text());
  }
  return Plan(plan);
}

inline Plan make_pairs(const kv_model::PairPlan& pairs, int me) {
  const kv_model::Moves& sent = pairs.sent[static_cast<std::size_t>(me)];
  std::vector<std::int64_t> from, to;
  for (const auto& move : sent) {
    from.push_back(move.from.block);
    to.push_back(move.to.block);
  }
  shmemx_kv_plan_t* plan = nullptr;
  if (shmemx_kv_plan_create_pairs(static_cast<int>(pairs.sent.size()), me, pairs.table.data(), from.data(), to.data(),
                                  static_cast<std::int64_t>(from.size()), &plan) != 0) {
    give_up(shmemx_error_text());
  }
  return Plan(plan);
}

inline shmemx_kv_cache_t describe(const kv_model::Shape& shape, void* k, void* v) {
  return {k,
          shape.format == SHMEMX_KV_APART ? v : nullptr,
          shape.format,
          shape.element_size,
          shape.layers,
          shape.blocks,
          shape.heads,
          shape.page,
          shape.dim};
}

/// A piece of symmetric memory that contains caches; the bytes around these must not change. Construction and
/// destruction are collective.
class Arena {
 public:
  /// Uses `globals`, symmetric memory of `bytes` bytes, or allocates its own if that is null.
  explicit Arena(std::size_t bytes, std::byte* globals = nullptr)
      : bytes_(bytes),
        owned_(globals == nullptr ? static_cast<std::byte*>(shmem_malloc(bytes)) : nullptr),
        base_(globals == nullptr ? owned_ : globals) {
    if (base_ == nullptr) {
      give_up("no memory");
    }
    clear();
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { shmem_free(owned_); }

  [[nodiscard]] std::byte* base() const { return base_; }
  /// Forgets all caches.
  void clear() {
    std::memset(base_, kElse, bytes_);
    spots_.clear();
    end_ = 0;
  }

  /// Finds a place for a cache, the same on all PEs, and fills this PE's.
  void add(kv_model::Random& random, const kv_model::Caches& caches) {
    const kv_model::Shape& shape = caches.shape();
    Spot spot{&caches, take(random, shape), 0};
    if (shape.format == SHMEMX_KV_APART) {
      spot.v = take(random, shape);
      if (random.one_in(2)) {
        std::swap(spot.k, spot.v);
      }
    }
    spots_.push_back(spot);
    const auto image = expected(shmem_my_pe());
    std::memcpy(base_, image.data(), image.size());
  }

  [[nodiscard]] shmemx_kv_cache_t cache(std::size_t index) const {
    return describe(spots_[index].caches->shape(), base_ + spots_[index].k, base_ + spots_[index].v);
  }
  /// Writes the model's contents of a block of this PE.
  void store(std::size_t index, std::int64_t block) {
    const auto& spot = spots_[index];
    each_part(spot, [&](std::int64_t layer, int side, std::int64_t which, std::size_t at) {
      const auto& bytes = spot.caches->block(shmem_my_pe(), layer, side, which);
      if (which == block) {
        std::memcpy(base_ + at, bytes.data(), bytes.size());
      }
    });
  }

  /// Compares every byte of the arena of `pe` with the model. Returns a description of the first difference, or "".
  [[nodiscard]] std::string compare(int pe) const {
    const auto image = expected(pe);
    std::vector<std::byte> fetched;
    const auto* bytes = static_cast<const std::byte*>(shmem_ptr(base_, pe));
    if (bytes == nullptr) {  // on another node
      fetched.resize(image.size());
      shmem_getmem(fetched.data(), base_, fetched.size(), pe);
      bytes = fetched.data();
    }
    if (std::memcmp(bytes, image.data(), image.size()) == 0) {
      return "";
    }
    std::size_t at = 0;
    while (bytes[at] == image[at]) {
      ++at;
    }
    return "PE " + std::to_string(pe) + ": " + describe_byte(at) + " is " +
           std::to_string(static_cast<int>(bytes[at])) + " and not " + std::to_string(static_cast<int>(image[at]));
  }

 private:
  static constexpr int kElse = 0x5c;
  struct Spot {
    const kv_model::Caches* caches;
    std::size_t k, v;
  };

  std::size_t take(kv_model::Random& random, const kv_model::Shape& shape) {
    const auto element = static_cast<std::size_t>(shape.element_size);
    const std::size_t alignment = random.one_in(2) ? 64 : element;
    const std::size_t begin =
        (end_ + static_cast<std::size_t>(random.below(200)) + alignment - 1) / alignment * alignment;
    end_ = begin + shape.k_bytes();
    if (end_ > bytes_) {
      give_up("the arena is too small");
    }
    return begin;
  }

  template <typename Function>
  static void each_part(const Spot& spot, const Function& function) {
    const kv_model::Shape& shape = spot.caches->shape();
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      for (int side = 0; side < shape.sides(); ++side) {
        for (std::int64_t block = 0; block < shape.blocks; ++block) {
          const kv_model::Place place = kv_model::place_of(shape, layer, side, block);
          function(layer, side, block, (place.in_v ? spot.v : spot.k) + place.offset);
        }
      }
    }
  }

  [[nodiscard]] std::vector<std::byte> expected(int pe) const {
    std::vector<std::byte> image(bytes_, std::byte{kElse});
    for (const Spot& spot : spots_) {
      each_part(spot, [&](std::int64_t layer, int side, std::int64_t block, std::size_t at) {
        const auto& bytes = spot.caches->block(pe, layer, side, block);
        std::memcpy(&image[at], bytes.data(), bytes.size());
      });
    }
    return image;
  }

  [[nodiscard]] std::string describe_byte(std::size_t at) const {
    std::string text = "byte " + std::to_string(at) + ", outside of the caches,";
    for (std::size_t i = 0; i < spots_.size(); ++i) {
      const std::size_t size = spots_[i].caches->shape().block_bytes();
      each_part(spots_[i], [&](std::int64_t layer, int side, std::int64_t block, std::size_t begin) {
        if (at < begin || at >= begin + size) {
          return;
        }
        text = "cache " + std::to_string(i) + " (" + spots_[i].caches->shape().text() + "), layer " +
               std::to_string(layer) + ", " + (side == 0 ? "K" : "V") + ", block " + std::to_string(block) + ", byte " +
               std::to_string(at - begin);
      });
    }
    return text;
  }

  std::size_t bytes_;
  std::byte* owned_;
  std::byte* base_;
  std::size_t end_ = 0;
  std::vector<Spot> spots_;
};

}  // namespace kv_test
