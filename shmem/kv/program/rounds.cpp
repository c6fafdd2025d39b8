// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/rounds.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace kv_program {
namespace {

using shmem::Result;
using SteadyClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

}  // namespace

Result<std::unique_ptr<Rounds>> Rounds::create(const Options& options, const Caches& caches) {
  auto operation = Operation::create(options, caches);
  if (!operation) {
    return tl::make_unexpected(operation.error());
  }
  return std::unique_ptr<Rounds>{new Rounds{options, caches, *std::move(operation)}};
}

Result<void> Rounds::repeat(Result<void> (Operation::*shuffle)()) {
  Result<void> done;
  for (int i = 0; i < options_.repeats && done; ++i) {
    done = ((*operation_).*shuffle)();
  }
  return done;
}

std::vector<std::span<const std::byte>> Rounds::parts_to_copy(const RoundPlan& plan) const {
  std::vector<std::span<const std::byte>> parts;
  // In pairs the sender copies; else the cores of sender and receiver share the work.
  const bool receivers_copy = plan.pairs.empty();
  caches_.for_each_part([&](Part part) {
    bool by_receiver = false;
    for (const auto& move : plan.moves) {
      if ((by_receiver ? move.destination_pe : move.source_pe) == shmem_my_pe()) {
        parts.emplace_back(caches_.bytes(part, by_receiver ? move.destination_block : move.source_block));
      }
      by_receiver = receivers_copy && !by_receiver;
    }
  });
  return parts;
}

/// Part i is copied by thread i mod threads.
void Rounds::copy(const std::vector<std::span<const std::byte>>& parts) {
  const auto work = [&](int thread, int threads) {
    for (std::size_t i = static_cast<std::size_t>(thread); i < parts.size(); i += static_cast<std::size_t>(threads)) {
      std::memcpy(elsewhere_.data() + i * parts[i].size(), parts[i].data(), parts[i].size());
    }
  };
  for (int i = 0; i < options_.repeats && !parts.empty(); ++i) {
    threads_.run(work);
  }
}

Result<RoundResult> Rounds::run(const RoundPlan& plan) {
  const auto parts = parts_to_copy(plan);
  // Outside of the time that is taken: this touches new memory.
  elsewhere_.resize(std::max(elsewhere_.size(), parts.empty() ? 0 : parts.size() * parts.front().size()));
  const auto prepared = operation_->prepare(plan);
  shmem_barrier_all();
  const auto start = SteadyClock::now();
  const auto shuffled = repeat(&Operation::shuffle);
  shmem_barrier_all();
  const auto shuffled_at = SteadyClock::now();
  const auto waited = repeat(&Operation::shuffle_nothing);
  shmem_barrier_all();
  const auto waited_at = SteadyClock::now();
  copy(parts);
  shmem_barrier_all();
  const auto copied_at = SteadyClock::now();
  for (const auto* step : {&prepared, &shuffled, &waited}) {
    if (!*step) {
      return tl::make_unexpected(step->error());
    }
  }
  RoundResult result{plan.before, plan.after, static_cast<std::int64_t>(plan.moves.size()), plan.spared, {}, {}, {}};
  if (!plan.moves.empty()) {
    const double bytes =
        static_cast<double>(caches_.shape().bytes_of_block()) * static_cast<double>(result.blocks * options_.repeats);
    const double seconds = Seconds(shuffled_at - start).count();
    result.shuffling = bytes / seconds;
    result.copying = bytes / Seconds(copied_at - waited_at).count();
    result.barrier_share = std::min(1.0, Seconds(waited_at - shuffled_at).count() / seconds);
  }
  return result;
}

}  // namespace kv_program
