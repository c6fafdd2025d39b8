// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/rounds.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace kv_program {
namespace {

using shmem::Result;
using shmem::kv::PairPlan;
using shmem::kv::PePlan;
using SteadyClock = std::chrono::steady_clock;

std::vector<std::int64_t> pair_table(const PairPlan& plan) {
  std::vector<std::int64_t> table;
  for (const PePlan& part : plan) {
    table.insert(table.end(), {part.peer, part.operation});
  }
  return table;
}

std::int64_t blocks_moved(const PairPlan& plan) {
  std::int64_t blocks = 0;
  for (const PePlan& part : plan) {
    blocks += part.operation == 0 ? static_cast<std::int64_t>(part.source.size()) : 0;
  }
  return blocks;
}

double rate(std::int64_t bytes, std::chrono::duration<double> time) {
  return static_cast<double>(bytes) / time.count();
}

}  // namespace

Result<std::unique_ptr<Rounds>> Rounds::create(const Options& options, const Caches& caches) {
  shmemx_kv_shuffle_t* operation = nullptr;
  if (const int error = shmemx_kv_shuffle_create(options.cores, &operation); error != 0) {
    return shmem::fail(std::errc{-error}, std::string("cannot make the operator: ") + shmemx_error_text());
  }
  return std::unique_ptr<Rounds>{new Rounds{options, caches, operation}};
}

Rounds::~Rounds() {
  shmemx_kv_shuffle_destroy(operation_);
}

Result<void> Rounds::shuffle(const PairPlan& plan) {
  const PePlan& mine = plan[static_cast<std::size_t>(shmem_my_pe())];
  const std::vector<std::int64_t> table = pair_table(plan);
  for (int i = 0; i < options_.repeats; ++i) {
    const int error =
        shmemx_kv_shuffle_run(operation_, caches_.k(), caches_.v(), &options_.shape, table.data(), mine.source.data(),
                              mine.destination.data(), static_cast<std::int64_t>(mine.source.size()));
    if (error != 0) {
      return shmem::fail(std::errc{-error}, shmemx_error_text());
    }
  }
  return {};
}

/// Block i of K, and then of V, is copied by thread i mod threads.
void Rounds::copy(const PePlan& mine) {
  const std::size_t blocks = mine.source.size();
  const std::size_t bytes = caches_.block_bytes();
  const auto work = [&](int thread, int threads) {
    for (std::size_t i = static_cast<std::size_t>(thread); i < 2 * blocks; i += static_cast<std::size_t>(threads)) {
      const Cache cache = i < blocks ? Cache::kK : Cache::kV;
      std::memcpy(elsewhere_.data() + i * bytes, caches_.block(cache, mine.source[i % blocks]), bytes);
    }
  };
  for (int i = 0; i < options_.repeats; ++i) {
    threads_.run(work);
  }
}

Result<void> Rounds::run(const PairPlan& plan) {
  const PePlan& mine = plan[static_cast<std::size_t>(shmem_my_pe())];
  const std::size_t copied = mine.operation == 0 ? 2 * mine.source.size() * caches_.block_bytes() : 0;
  // Outside of the time that is taken: this touches new memory.
  elsewhere_.resize(std::max(elsewhere_.size(), copied));
  shmem_barrier_all();
  const auto start = SteadyClock::now();
  auto shuffled = shuffle(plan);
  shmem_barrier_all();
  const auto middle = SteadyClock::now();
  if (copied > 0) {
    copy(mine);
  }
  shmem_barrier_all();
  const auto end = SteadyClock::now();
  if (const std::int64_t blocks = blocks_moved(plan) * options_.repeats; blocks > 0) {
    const std::int64_t bytes = 2 * blocks * static_cast<std::int64_t>(caches_.block_bytes());
    totals_.blocks += blocks;
    totals_.bytes += bytes;
    totals_.shuffling.push_back(rate(bytes, middle - start));
    totals_.copying.push_back(rate(bytes, end - middle));
  }
  return shuffled;
}

}  // namespace kv_program
