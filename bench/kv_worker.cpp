// SPDX-License-Identifier: Apache-2.0
// One of two PEs that measure kv_shuffle or, built by Open MPI's compiler with BENCH_OPENMPI_SHMEM, puts of them.
//
//   kv_worker FILE REPEATS PART     REPEATS: measurements of each; PART: text_of(KvPart)
#include <shmem.h>
#ifndef BENCH_OPENMPI_SHMEM
#include <shmemx.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/kv_cache.hpp"
#include "bench/worker.hpp"

namespace bench {
namespace {

#ifdef BENCH_OPENMPI_SHMEM

class KvOperator {
 public:
  explicit KvOperator(const KvPart& /*part*/) {}
};

/// Moves from this PE to its partner and, if both send, the same moves back.
class KvShuffle {
 public:
  KvShuffle(KvOperator& /*op*/, const KvPart& part, const KvCaches& caches, const KvShape& shape,
            const std::vector<KvMove>& moves)
      : block_(shape.block) {
    if (part.both_ways || shmem_my_pe() == 0) {
      pieces_ = pieces_of(caches, shape, moves);
    }
  }
  /// Returns when the blocks that this PE sends have arrived.
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

constexpr std::size_t kPage = 4096;
/// Shuffles of few blocks that run in turn, so that no shuffle finds its blocks in a processor's cache.
constexpr std::size_t kMostTurns = 256;

char* allocate(std::size_t size) {
  void* memory = shmem_align(kPage, size);
  if (memory == nullptr) {
    throw std::runtime_error("no symmetric memory for " + size_text(size));
  }
  std::memset(memory, 1 + shmem_my_pe(), size);
  return static_cast<char*>(memory);
}

/// The same memory of the partner. Touches all its pages, since the first shuffle would otherwise take page faults.
char* partners(const char* mine, std::size_t size) {
  void* there = shmem_ptr(mine, 1 - shmem_my_pe());
  if (there == nullptr) {
    throw std::runtime_error("shmem_ptr does not reach the other PE");
  }
  auto* bytes = static_cast<char*>(there);
  for (std::size_t page = 0; page < size; page += kPage) {
    std::atomic_ref<char>(bytes[page]).fetch_or(0, std::memory_order_relaxed);
  }
  return bytes;
}

/// Nanoseconds that `threads` threads, this one among them, take for share(0), share(1), ... from when all are awake.
template <typename Share, typename Synchronise>
double time_threads(const Worker& worker, int threads, Share share, Synchronise synchronise) {
  std::atomic<int> awake{1};
  std::atomic<bool> go{false};
  std::atomic<int> done{0};
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) {
    others.emplace_back([&, i] {
      worker.unpin();
      awake.fetch_add(1);
      while (!go.load()) {
        std::this_thread::yield();
      }
      share(i);
      done.fetch_add(1);
    });
  }
  while (awake.load() < threads) {
    std::this_thread::yield();
  }
  synchronise();
  const Stopwatch watch;
  go.store(true);
  share(0);
  while (done.load() < threads - 1) {
    std::this_thread::yield();
  }
  synchronise();
  return watch.nanoseconds();
}

/// The caches of both PEs and an operator, for the whole job.
struct Site {
  Site(Worker& its_worker, const KvPart& its_part)
      : worker(its_worker), part(its_part), op(its_part), caches{allocate(2 * part.bytes), allocate(2 * part.bytes)} {
    shmem_barrier_all();  // after which its memory exists
    caches.k_there = partners(caches.k, 2 * part.bytes);
    caches.v_there = partners(caches.v, 2 * part.bytes);
  }
  [[nodiscard]] bool sends() const { return part.both_ways || shmem_my_pe() == 0; }
  void synchronise() const {
    if (part.both_ways) {
      worker.synchronise_yielding();
    }
  }

  Worker& worker;
  KvPart part;
  KvOperator op;
  KvCaches caches;
};

/// Blocks of one size: several shuffles that run in turn, and copies of their blocks one by one.
class Blocks {
 public:
  Blocks(Site& site, std::size_t block) : site_(site), block_(block) {
    const KvShape shape = shape_of(site.part, block);
    const std::size_t count = moves_of(site.part, block);
    const auto moves = scattered_moves(shape, shape.blocks / 2 / count * count);
    const std::size_t turns = site.part.few && !site.part.same ? std::min(moves.size() / count, kMostTurns) : 1;
    for (std::size_t i = 0; i < turns; ++i) {
      const auto first = moves.begin() + static_cast<std::ptrdiff_t>(i * count);
      const std::vector<KvMove> some(first, first + static_cast<std::ptrdiff_t>(count));
      shuffles_.emplace_back(site.op, site.part, site.caches, shape, some);
      pieces_.push_back(pieces_of(site.caches, shape, some));
    }
  }

  double shuffle(std::uint32_t count) {
    site_.worker.synchronise_yielding();
    const Stopwatch watch;
    for (std::uint32_t i = 0; i < count; ++i) {
      shuffles_[(shuffled_ + i) % shuffles_.size()].run();
    }
    site_.synchronise();
    shuffled_ += count;
    return watch.nanoseconds() / count;
  }

  /// Only senders copy; receivers leave them the processors.
  double copy(std::uint32_t count) {
    if (!site_.sends()) {
      return 0;
    }
    const int threads = copying_threads();
    const double time = time_threads(
        site_.worker, threads,
        [&](int thread) {
          for (std::uint32_t i = 0; i < count; ++i) {
            copy_share(pieces_[(copied_ + i) % pieces_.size()], static_cast<std::size_t>(thread));
          }
        },
        [&] { site_.synchronise(); });
    copied_ += count;
    return time / count;
  }

 private:
  /// In a shuffle in one direction the receiver's cores copy as well. More threads than processors are no faster.
  [[nodiscard]] int copying_threads() const {
    const int cores = site_.part.cores;
    return site_.part.both_ways ? cores : std::min(2 * cores, site_.worker.processors());
  }

  void copy_share(const std::vector<KvPiece>& pieces, std::size_t thread) const {
    const auto threads = static_cast<std::size_t>(copying_threads());
    for (std::size_t i = pieces.size() * thread / threads; i < pieces.size() * (thread + 1) / threads; ++i) {
      std::memcpy(pieces[i].to, pieces[i].from, block_);
    }
  }

  Site& site_;
  std::size_t block_;
  std::vector<KvShuffle> shuffles_;
  std::vector<std::vector<KvPiece>> pieces_;
  std::size_t shuffled_ = 0;
  std::size_t copied_ = 0;
};

std::vector<Item> kv_items(Worker& worker, const KvPart& part) {
  if (part.cores > 1) {
    worker.unpin();  // the operator's cores inherit this thread's processors
  }
  const auto site = std::make_shared<Site>(worker, part);
  std::vector<Item> items;
  for (const std::size_t block : kKvBlocks) {
    const auto blocks = std::make_shared<Blocks>(*site, block);
    // The items share ownership of the site, which must outlive them.
    items.push_back({size_text(block), [site, blocks](std::uint32_t count) { return blocks->shuffle(count); },
                     [blocks](std::uint32_t count) { return blocks->copy(count); }, part.few ? 50U : 1U});
  }
  return items;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, [](bench::Worker& worker, const std::vector<std::string>& parts) {
    return bench::kv_items(worker, bench::kv_part(parts[0]));
  });
}
