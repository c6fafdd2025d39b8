// SPDX-License-Identifier: Apache-2.0
// What moves blocks: the operator of libshmem, or, of a library that has none (BENCH_OPENMPI_SHMEM), a put for each
// block.
#pragma once

#include <shmem.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/kv_cache.hpp"
#include "bench/kv_items.hpp"
#ifndef BENCH_OPENMPI_SHMEM
#include <shmemx.h>
#endif

namespace bench {

#ifdef BENCH_OPENMPI_SHMEM

class KvOperator {
 public:
  explicit KvOperator(const KvPart& /*part*/) {}
};

/// Some moves from this PE to its partner, and the same ones back if it goes both ways.
class KvShuffle {
 public:
  KvShuffle(KvOperator& /*op*/, const KvPart& part, const KvCaches& caches, const KvShape& shape,
            const std::vector<KvMove>& moves)
      : block_(shape.block) {
    if (part.both_ways || shmem_my_pe() == 0) {
      pieces_ = pieces_of(caches, shape, moves);
    }
  }
  /// Returns when what this PE sends has arrived.
  void run() {
    for (const KvPiece& piece : pieces_) {
      shmem_putmem_nbi(piece.symmetric, piece.from, block_, 1 - shmem_my_pe());
    }
    shmem_quiet();
  }

 private:
  std::size_t block_;
  std::vector<KvPiece> pieces_;
};

#else

inline void check(int error, const char* doing) {
  if (error != 0) {
    throw std::runtime_error(std::string(doing) + ": " + shmemx_error_text());
  }
}

class KvOperator {
 public:
  explicit KvOperator(const KvPart& part) {
    shmemx_kv_options_t options{};
    options.cores = part.cores;
    options.path = part.path == "scratch"  ? SHMEMX_KV_PATH_SCRATCH
                   : part.path == "direct" ? SHMEMX_KV_PATH_DIRECT
                                           : SHMEMX_KV_PATH_AUTO;
    shmemx_kv_op_t* op = nullptr;
    check(shmemx_kv_op_create(SHMEM_TEAM_WORLD, &options, &op), "making a kv_shuffle operator");
    op_.reset(op);
  }
  [[nodiscard]] shmemx_kv_op_t* get() const { return op_.get(); }

 private:
  struct Destroy {
    void operator()(shmemx_kv_op_t* op) const { shmemx_kv_op_destroy(op); }
  };
  std::unique_ptr<shmemx_kv_op_t, Destroy> op_;
};

class KvShuffle {
 public:
  KvShuffle(KvOperator& op, const KvPart& part, const KvCaches& caches, const KvShape& shape,
            const std::vector<KvMove>& moves)
      : op_(op.get()) {
    cache_.k = caches.k;
    cache_.v = caches.v;
    cache_.format = SHMEMX_KV_APART;
    cache_.element_size = 1;
    cache_.layers = static_cast<std::int64_t>(shape.layers);
    cache_.blocks = static_cast<std::int64_t>(shape.blocks);
    cache_.kv_heads = 1;
    cache_.page_size = 1;
    cache_.head_dim = static_cast<std::int64_t>(shape.block);
    std::vector<shmemx_kv_move_t> all;
    for (const KvMove& move : moves) {
      all.push_back({0, move.from, 1, move.to});
      if (part.both_ways) {
        all.push_back({1, move.from, 0, move.to});
      }
    }
    shmemx_kv_plan_t* plan = nullptr;
    check(shmemx_kv_plan_create(all.data(), all.size(), SHMEMX_KV_COPY, &plan), "making a plan");
    plan_.reset(plan);
  }
  /// Returns when all blocks of both PEs have arrived.
  void run() { check(shmemx_kv_shuffle(op_, plan_.get(), &cache_), "kv_shuffle"); }

 private:
  struct Destroy {
    void operator()(shmemx_kv_plan_t* plan) const { shmemx_kv_plan_destroy(plan); }
  };
  shmemx_kv_op_t* op_;
  shmemx_kv_cache_t cache_{};
  std::unique_ptr<shmemx_kv_plan_t, Destroy> plan_;
};

#endif

}  // namespace bench
