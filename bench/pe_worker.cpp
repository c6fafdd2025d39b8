// SPDX-License-Identifier: Apache-2.0
// One of the two PEs of bench_all: barriers, puts and kv_shuffle.
//
//   pe_worker FILE REPEATS PART     REPEATS: measurements of each; PART: not used
#include <shmem.h>
#include <shmemx.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/worker.hpp"

namespace bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr double kAnyTime = 1e12;

/// `size` bytes of zeroed symmetric memory, kept until shmem_finalize. Throws std::runtime_error.
char* allocate_symmetric(std::size_t size) {
  void* memory = shmem_align(kPage, size);
  if (memory == nullptr) {
    throw std::runtime_error("no symmetric memory for " + size_text(size));
  }
  std::memset(memory, 0, size);
  return static_cast<char*>(memory);
}

bool is_first() {
  return shmem_my_pe() == 0;
}

void read_all(const char* bytes, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + sizeof sum <= size; at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    sum += word;
  }
  asm volatile("" : : "r"(sum));
}

/// An item that is always measured `count` times in a repeat.
Item item(const std::string& name, std::uint32_t count, std::function<double(std::uint32_t)> figure,
          std::function<double(std::uint32_t)> base = {}) {
  return {name, std::move(figure), std::move(base), count, count, kAnyTime};
}

template <typename Action>
auto each(Action action) {
  return [action](std::uint32_t count) { return time_each(static_cast<int>(count), action); };
}

/// Only PE 0 acts, once before it is measured.
template <typename Action>
auto alone(Action action) {
  return [action](std::uint32_t count) {
    if (!is_first()) {
      return 0.0;
    }
    action();
    return time_each(static_cast<int>(count), action);
  };
}

/// Measures each `copy` by itself on PE 0, while PE 1 calls `take_part`; then PE 1 reads the `size` bytes that arrived.
template <typename Copy, typename TakePart>
auto read_in_between(Worker& worker, Copy copy, TakePart take_part, const char* destination, std::size_t size) {
  return [&worker, copy, take_part, destination, size](std::uint32_t count) {
    double time = 0;
    for (std::uint32_t round = 0; round < count; ++round) {
      worker.synchronise();
      if (is_first()) {
        time += time_each(1, copy);
      } else {
        take_part();
      }
      worker.synchronise();
      if (!is_first()) {
        read_all(destination, size);
      }
      worker.synchronise();
    }
    return time / count;
  };
}

constexpr std::uint32_t kBarriers = 10'000;
constexpr std::uint32_t kSmallPuts = 100'000;
constexpr std::uint32_t kLargePuts = 20;

void add_puts(Worker& worker, std::vector<Item>& items) {
  char* const here = allocate_symmetric(kMebibyte);
  const char* const source = allocate_symmetric(kMebibyte);
  auto* const there = static_cast<char*>(shmem_ptr(here, 1));  // PE 1's, as PE 0 sees it
  const auto store = [there] {
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(there)).store(7, std::memory_order_relaxed);
  };
  const auto put_small = [here, value = std::uint64_t{7}] { shmem_putmem(here, &value, sizeof value, 1); };
  const auto copy = [there, source] { std::memcpy(there, source, kMebibyte); };
  const auto put = [here, source] {
    shmem_putmem(here, source, kMebibyte, 1);
    shmem_quiet();
  };
  const auto nothing = [] {};
  items.push_back(item("put 8 B", kSmallPuts, alone(put_small), alone(store)));
  items.push_back(item("put 1 MiB, destination not read in between", kLargePuts, alone(put), alone(copy)));
  items.push_back(item("put 1 MiB, destination read by its owner each time", kLargePuts,
                       read_in_between(worker, put, nothing, here, kMebibyte),
                       read_in_between(worker, copy, nothing, here, kMebibyte)));
}

constexpr shmemx_kv_cache_t kShape{nullptr, nullptr, SHMEMX_KV_APART, 1, 1, 64, 8, 128, 128};
constexpr std::size_t kBlock = std::size_t{8} * 128 * 128;  // as in kShape
constexpr std::int64_t kMoved = kShape.blocks / 2;
static_assert(2 * kMoved * kBlock == kShuffledBytes);
constexpr std::size_t kCache = static_cast<std::size_t>(kShape.blocks) * kBlock;
constexpr int kCores = 2;
constexpr std::uint32_t kShuffles = 5;

void check(int error, const char* doing) {
  if (error != 0) {
    throw std::runtime_error(std::string(doing) + ": " + shmemx_error_text());
  }
}

struct Destroy {
  void operator()(shmemx_kv_op_t* op) const { shmemx_kv_op_destroy(op); }
  void operator()(shmemx_kv_plan_t* plan) const { shmemx_kv_plan_destroy(plan); }
};

/// Caches, tables and the operator. Both PEs construct, use and destroy it together.
class Shuffle {
 public:
  Shuffle()
      : k_(allocate_symmetric(kCache)),
        v_(allocate_symmetric(kCache)),
        k_there_(static_cast<char*>(shmem_ptr(k_, 1))),
        v_there_(static_cast<char*>(shmem_ptr(v_, 1))),
        from_(kMoved),
        to_(kMoved) {
    std::iota(from_.begin(), from_.end(), 0);
    std::iota(to_.begin(), to_.end(), kMoved);
    cache_.k = k_;
    cache_.v = v_;
    const shmemx_kv_options_t how{kCores, SHMEMX_KV_PATH_AUTO, 0};
    shmemx_kv_op_t* op = nullptr;
    check(shmemx_kv_op_create(SHMEM_TEAM_WORLD, &how, &op), "making a kv_shuffle operator");
    operator_.reset(op);
    shmemx_kv_plan_t* plan = nullptr;
    check(shmemx_kv_plan_create_pairs(2, shmem_my_pe(), pairs_.data(), from_.data(), to_.data(), kMoved, &plan),
          "making a plan");
    plan_.reset(plan);
  }

  void shuffle() { check(shmemx_kv_shuffle(operator_.get(), plan_.get(), &cache_), "kv_shuffle"); }

  /// PE 0 alone copies the same bytes to the same places.
  void copy() {
    for (std::size_t i = 0; i < from_.size(); ++i) {
      const auto from = static_cast<std::size_t>(from_[i]) * kBlock;
      const auto to = static_cast<std::size_t>(to_[i]) * kBlock;
      std::memcpy(k_there_ + to, k_ + from, kBlock);
      std::memcpy(v_there_ + to, v_ + from, kBlock);
    }
  }

  /// The bytes that arrive in PE 1's K cache, and their number.
  [[nodiscard]] const char* arrived() const { return k_ + kMoved * kBlock; }
  static constexpr std::size_t kArrived = kMoved * kBlock;

 private:
  char* k_;
  char* v_;
  char* k_there_;
  char* v_there_;
  std::vector<std::int64_t> pairs_{1, 0, 0, 1};  // PE 0: with 1, sends; PE 1: with 0, receives
  std::vector<std::int64_t> from_;
  std::vector<std::int64_t> to_;
  shmemx_kv_cache_t cache_ = kShape;
  std::unique_ptr<shmemx_kv_plan_t, Destroy> plan_;
  std::unique_ptr<shmemx_kv_op_t, Destroy> operator_;
};

std::vector<Item> all_items(Worker& worker) {
  std::vector<Item> items;
  items.push_back(item("2-PE barrier, shmem_team_sync", kBarriers, each([] { shmem_team_sync(SHMEM_TEAM_WORLD); })));
  items.push_back(item("2-PE barrier, shmem_barrier_all", kBarriers, each([] { shmem_barrier_all(); })));
  add_puts(worker, items);
  const auto kv = std::make_shared<Shuffle>();
  const auto shuffle = [kv] { kv->shuffle(); };
  const auto copy = [kv] { kv->copy(); };
  items.push_back(item("kv_shuffle of 8 MiB, K read by the receiver each time", kShuffles,
                       read_in_between(worker, shuffle, shuffle, kv->arrived(), Shuffle::kArrived),
                       read_in_between(
                           worker, copy, [] {}, kv->arrived(), Shuffle::kArrived)));
  return items;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, [](bench::Worker& worker, const std::vector<std::string>& /*parts*/) {
    return bench::all_items(worker);
  });
}
