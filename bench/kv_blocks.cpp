// SPDX-License-Identifier: Apache-2.0
// kv_shuffle of two PEs or, of Open MPI, puts of the same blocks; compared with memcpy.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/kv_part.hpp"
#include "bench/library.hpp"

namespace bench {
namespace {

/// A move of the block in all layers, of K and of V.
struct KvMove {
  std::int64_t from, to;
};

/// The memory of this PE, and that of its partner as mapped here.
struct KvCaches {
  char* k = nullptr;
  char* v = nullptr;
  char* k_there = nullptr;
  char* v_there = nullptr;
};

/// One block: its destination as mapped here, the symmetric address of the destination, and its source.
struct KvPiece {
  char* to;
  char* symmetric;
  const char* from;
};

/// The same in each run and on both PEs.
std::mt19937& generator() {
  static std::mt19937 random{1};
  return random;
}

std::vector<std::int64_t> shuffled(std::size_t first, std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), static_cast<std::int64_t>(first));
  std::shuffle(numbers.begin(), numbers.end(), generator());
  return numbers;
}

/// Moves of `count` blocks from all over the lower half of the cache to all over the upper half.
std::vector<KvMove> scattered_moves(const KvShape& shape, std::size_t count) {
  const std::size_t half = shape.blocks / 2;
  const auto from = shuffled(0, half);
  const auto to = shuffled(half, half);
  std::vector<KvMove> moves;
  for (std::size_t i = 0; i < count; ++i) {
    moves.push_back({from[i], to[i]});
  }
  return moves;
}

/// The blocks of `moves` one by one, layer by layer.
std::vector<KvPiece> pieces_of(const KvCaches& caches, const KvShape& shape, const std::vector<KvMove>& moves) {
  std::vector<KvPiece> pieces;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    for (const KvMove& move : moves) {
      const auto place = [&](std::int64_t block) {
        return (layer * shape.blocks + static_cast<std::size_t>(block)) * shape.block;
      };
      pieces.push_back({caches.k_there + place(move.to), caches.k + place(move.to), caches.k + place(move.from)});
      pieces.push_back({caches.v_there + place(move.to), caches.v + place(move.to), caches.v + place(move.from)});
    }
  }
  return pieces;
}

#ifdef BENCH_OPENMPI_SHMEM

struct KvOperator {
  explicit KvOperator(const KvPart& /*part*/) {}
};

/// Moves from this PE to its partner and, if both send, the same moves back.
class KvShuffle {
 public:
  KvShuffle(KvOperator& /*op*/, const KvPart& part, const KvCaches& caches, const KvShape& shape,
            const std::vector<KvMove>& moves)
      : block_(shape.block) {
    if (part.both_ways || Library::me() == 0) {
      pieces_ = pieces_of(caches, shape, moves);
    }
  }
  /// Returns when the blocks that this PE sends have arrived.
  void run() {
    for (const KvPiece& piece : pieces_) {
      shmem_putmem_nbi(piece.symmetric, piece.from, block_, 1 - Library::me());
    }
    shmem_quiet();
  }

 private:
  std::size_t block_;
  std::vector<KvPiece> pieces_;
};

#else

void check(int error, const char* doing) {
  if (error != 0) {
    throw std::runtime_error(std::string(doing) + ": " + shmemx_error_text());
  }
}

struct Destroy {
  void operator()(shmemx_kv_op_t* op) const { shmemx_kv_op_destroy(op); }
  void operator()(shmemx_kv_plan_t* plan) const { shmemx_kv_plan_destroy(plan); }
};

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
  std::unique_ptr<shmemx_kv_op_t, Destroy> op_;
};

class KvShuffle {
 public:
  KvShuffle(KvOperator& op, const KvPart& part, const KvCaches& caches, const KvShape& shape,
            const std::vector<KvMove>& moves)
      : op_(op.get()),
        cache_{caches.k,
               caches.v,
               SHMEMX_KV_APART,
               /*element_size=*/1,
               static_cast<std::int64_t>(shape.layers),
               static_cast<std::int64_t>(shape.blocks),
               /*kv_heads=*/1,
               /*page_size=*/1,
               /*head_dim=*/static_cast<std::int64_t>(shape.block)} {
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
  shmemx_kv_op_t* op_;
  shmemx_kv_cache_t cache_;
  std::unique_ptr<shmemx_kv_plan_t, Destroy> plan_;
};

#endif

/// Shuffles of few blocks that run in turn, so that no shuffle finds its blocks in a processor's cache.
constexpr std::size_t kMostTurns = 256;

/// The same memory of the partner. Touches all its pages, since the first shuffle would otherwise take page faults.
char* partners(const char* mine, std::size_t size) {
  constexpr std::size_t kPage = 4096;
  auto* bytes = static_cast<char*>(shmem_ptr(mine, 1 - Library::me()));
  if (bytes == nullptr) {
    throw std::runtime_error("shmem_ptr does not reach the other PE");
  }
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
  Site(Worker& its_worker, const KvPart& its_part) : worker(its_worker), part(its_part), op(its_part) {
    const std::size_t size = 2 * part.bytes;
    caches.k = symmetric_memory(size, 1 + Library::me());
    caches.v = symmetric_memory(size, 1 + Library::me());
    Library::barrier();  // after which the partner's memory exists
    caches.k_there = partners(caches.k, size);
    caches.v_there = partners(caches.v, size);
  }
  [[nodiscard]] bool sends() const { return part.both_ways || Library::me() == 0; }
  void synchronise() const {
    if (part.both_ways) {
      worker.synchronise_yielding();
    }
  }

  Worker& worker;
  KvPart part;
  KvOperator op;
  KvCaches caches{};
};

/// Blocks of one size: several shuffles that run in turn, and copies of their blocks one by one.
class Blocks {
 public:
  Blocks(Site& site, std::size_t block) : site_(site), block_(block) {
    const KvShape shape = site.part.shape(block);
    const std::size_t count = site.part.moves(block);
    const auto moves = scattered_moves(shape, shape.blocks / 2 / count * count);
    const std::size_t turns = site.part.few && !site.part.same ? std::min(moves.size() / count, kMostTurns) : 1;
    for (std::size_t i = 0; i < turns; ++i) {
      const auto first = moves.begin() + static_cast<std::ptrdiff_t>(i * count);
      const std::vector<KvMove> some(first, first + static_cast<std::ptrdiff_t>(count));
      shuffles_.emplace_back(site.op, site.part, site.caches, shape, some);
      pieces_.push_back(pieces_of(site.caches, shape, some));
    }
  }

  void shuffle() { shuffles_[shuffled_++ % shuffles_.size()].run(); }
  double shuffle(int count) {
    site_.worker.synchronise_yielding();
    const Stopwatch watch;
    for (int i = 0; i < count; ++i) {
      shuffle();
    }
    site_.synchronise();
    return watch.nanoseconds() / count;
  }

  /// The share of one of `threads` in the blocks of one shuffle; the same in each turn.
  void copy(std::size_t turn, int thread, int threads) const {
    const auto& pieces = pieces_[turn % pieces_.size()];
    const auto share = [&](int end) {
      return pieces.size() * static_cast<std::size_t>(end) / static_cast<std::size_t>(threads);
    };
    for (std::size_t i = share(thread); i < share(thread + 1); ++i) {
      std::memcpy(pieces[i].to, pieces[i].from, block_);
    }
  }
  /// Only senders copy; receivers leave them the processors.
  double copy(int count) {
    if (!site_.sends()) {
      return 0;
    }
    const int threads = copying_threads();
    const auto share = [&](int thread) {
      for (int i = 0; i < count; ++i) {
        copy(copied_ + static_cast<std::size_t>(i), thread, threads);
      }
    };
    const double time = time_threads(site_.worker, threads, share, [&] { site_.synchronise(); });
    copied_ += static_cast<std::size_t>(count);
    return time / count;
  }

 private:
  /// In a shuffle in one direction the receiver's cores copy as well. More threads than processors are no faster.
  [[nodiscard]] int copying_threads() const {
    const int cores = site_.part.cores;
    return site_.part.both_ways ? cores : std::min(2 * cores, site_.worker.processors());
  }

  Site& site_;
  std::size_t block_;
  std::vector<KvShuffle> shuffles_;
  std::vector<std::vector<KvPiece>> pieces_;
  std::size_t shuffled_ = 0;
  std::size_t copied_ = 0;
};

/// Arguments: KvPart::words().
const Part kKv("kv", [](Worker& worker, const Arguments& arguments) {
  const KvPart part = KvPart::of(arguments);
  if (part.cores > 1) {
    worker.unpin();  // the operator's cores inherit this thread's processors
  }
  const auto site = std::make_shared<Site>(worker, part);
  Items items;
  for (const std::size_t block : kKvBlocks) {
    const auto blocks = std::make_shared<Blocks>(*site, block);
    // The items share ownership of the site, which must outlive them.
    items.push_back({size_text(block), [site, blocks](int count) { return blocks->shuffle(count); },
                     [blocks](int count) { return blocks->copy(count); }, part.few ? 50 : 1});
  }
  return items;
});

#ifdef BENCH_OURS
/// For bench_all.
const Part kKvOfOneSize("kv of 8 MiB", [](Worker& worker, const Arguments& /*arguments*/) {
  constexpr std::size_t kBlock = 128 << 10;
  constexpr int kShuffles = 5;
  const auto site = std::make_shared<Site>(worker, KvPart{.cores = 2, .bytes = kShuffledBytes});
  const auto blocks = std::make_shared<Blocks>(*site, kBlock);
  const char* const arrived = site->caches.k + site->part.bytes;  // the upper half of the cache
  const auto shuffle = [site, blocks] { blocks->shuffle(); };
  const auto copy = [blocks] { blocks->copy(0, 0, 1); };
  const auto nothing = [] {};
  return Items{{"kv_shuffle of 8 MiB, K read by the receiver each time",
                read_in_between(worker, shuffle, shuffle, arrived, site->part.bytes),
                read_in_between(worker, copy, nothing, arrived, site->part.bytes), kShuffles, kShuffles}};
});
#endif

}  // namespace
}  // namespace bench
