// SPDX-License-Identifier: Apache-2.0
// PE 0 sends half of its K and V blocks to PE 1.
#include <shmem.h>
#include <shmemx.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/pe_pair.hpp"

namespace bench {
namespace {

constexpr shmemx_kv_cache_t kShape{nullptr, nullptr, SHMEMX_KV_APART, 1, 1, 64, 8, 128, 128};
constexpr std::size_t kBlock = std::size_t{8} * 128 * 128;  // as kShape says
constexpr std::int64_t kMoved = kShape.blocks / 2;
static_assert(2 * kMoved * kBlock == kShuffledBytes);
constexpr std::size_t kCache = static_cast<std::size_t>(kShape.blocks) * kBlock;
constexpr int kCores = 2;
constexpr int kShuffles = 5;

void check(int error, const char* doing) {
  if (error != 0) {
    throw std::runtime_error(std::string(doing) + ": " + shmemx_error_text());
  }
}

struct Destroy {
  void operator()(shmemx_kv_op_t* op) const { shmemx_kv_op_destroy(op); }
  void operator()(shmemx_kv_plan_t* plan) const { shmemx_kv_plan_destroy(plan); }
};

/// Caches, tables and the operator. Built, used and ended by both PEs together.
class Shuffle {
 public:
  Shuffle()
      : k_(static_cast<char*>(allocate_symmetric(kCache))),
        v_(static_cast<char*>(allocate_symmetric(kCache))),
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

  /// The same bytes to the same places, by PE 0 alone.
  void copy() {
    for (std::size_t i = 0; i < from_.size(); ++i) {
      const auto from = static_cast<std::size_t>(from_[i]) * kBlock;
      const auto to = static_cast<std::size_t>(to_[i]) * kBlock;
      std::memcpy(k_there_ + to, k_ + from, kBlock);
      std::memcpy(v_there_ + to, v_ + from, kBlock);
    }
  }

  /// What arrives on PE 1 in its K cache, and how much that is.
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

}  // namespace

void measure_kv_shuffle(Pair& pair) {
  Shuffle kv;
  const auto shuffle = [&] { kv.shuffle(); };
  const auto copy = [&] { kv.copy(); };
  pair.print_points("kv_shuffle of 8 MiB, K read by the receiver each time", [&](Point& point) {
    for (int i = 0; i < kShuffles; ++i) {
      point.base += pair.copy_and_read(
                        copy, [] {}, kv.arrived(), Shuffle::kArrived) /
                    kShuffles;
      point.figure += pair.copy_and_read(shuffle, shuffle, kv.arrived(), Shuffle::kArrived) / kShuffles;
    }
  });
}

}  // namespace bench
