// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kv/played_pes.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace kv_test {
namespace {

std::size_t round_to_line(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

PlayedPes::PlayedPes(int pes, const OperatorSettings& settings, const Shape& shape, int pes_a_node)
    : pes_(pes),
      pes_a_node_(pes_a_node),
      shape_(shape),
      buffer_bytes_(round_to_line(shmem::kv::layout_of(shape)->buffer_bytes())),
      part_bytes_(2 * buffer_bytes_ + shmem::kv::Operator::lines(pes, settings.cores) * sizeof(shmem::SyncWord)),
      memory_(new (std::align_val_t{64}) std::byte[part_bytes_ * static_cast<std::size_t>(pes)]),
      ballots_(static_cast<std::size_t>(pes)) {
  std::memset(memory_.get(), 0, part_bytes_ * static_cast<std::size_t>(pes));
  const auto policy = shmem::wait_policy(pes * settings.cores);
  for (int pe = 0; pe < pes; ++pe) {
    operators_.push_back(
        *shmem::kv::Operator::create(std::make_unique<PlayedTeam>(*this, pe), settings, policy, v(pe) + buffer_bytes_));
  }
  fill(1);
}

shmem::Result<void> PlayedPes::sync() {
  std::unique_lock lock{mutex_};
  if (++arrived_ == pes_) {
    arrived_ = 0;
    ++syncs_;
    met_.notify_all();
    return {};
  }
  const auto before = syncs_;
  if (!met_.wait_for(lock, time_limit, [&] { return syncs_ != before; })) {
    --arrived_;
    return shmem::fail(std::errc::timed_out, "a PE did not arrive");
  }
  return {};
}

/// The first sync ends when all PEs have voted. The second one keeps a PE from voting again before all have read.
shmem::Result<PlayedTeam::Vote> PlayedPes::vote(int pe, std::uint64_t digest, bool willing) {
  ballots_[static_cast<std::size_t>(pe)] = {digest, willing};
  if (auto met = sync(); !met) {
    return met.error();
  }
  PlayedTeam::Vote verdict{true, true, 0};
  for (int other = pes_ - 1; other >= 0; --other) {
    const Ballot& ballot = ballots_[static_cast<std::size_t>(other)];
    verdict.alike = verdict.alike && ballot.digest == ballots_[0].digest;
    if (!ballot.willing) {
      verdict.willing = false;
      verdict.other = other;
    }
  }
  if (auto met = sync(); !met) {
    return met.error();
  }
  return verdict;
}

Cache PlayedPes::cache(int pe) {
  return {.shape = shape_, .place = {.k = k(pe), .v = shape_.format == Format::kApart ? v(pe) : nullptr}};
}

void PlayedPes::fill(unsigned seed) {
  std::mt19937 random{seed};
  for (int pe = 0; pe < pes_; ++pe) {
    for (std::size_t i = 0; i < 2 * buffer_bytes_; ++i) {
      k(pe)[i] = static_cast<std::byte>(random());
    }
  }
}

std::vector<std::byte> PlayedPes::caches(int pe) {
  return {k(pe), k(pe) + 2 * buffer_bytes_};
}

std::vector<std::vector<std::byte>> PlayedPes::all_caches() {
  std::vector<std::vector<std::byte>> all;
  all.reserve(static_cast<std::size_t>(pes_));
  for (int pe = 0; pe < pes_; ++pe) {
    all.push_back(caches(pe));
  }
  return all;
}

PairPlan PlayedPes::table(int pe, const std::vector<std::int64_t>& pairs, const Blocks& blocks) {
  return *PairPlan::create(pairs, pe, blocks.source, blocks.destination);
}

shmem::Error PlayedPes::run_one(int pe, const Call& call) {
  auto& operation = *operators_[static_cast<std::size_t>(pe)];
  auto ok = call.table != nullptr ? operation.run(*call.table, call.cache) : operation.run(call.list, call.cache);
  return ok ? shmem::Error{} : ok.error();
}

std::vector<shmem::Error> PlayedPes::run_all(const std::function<Call(int pe)>& call_of) {
  std::vector<shmem::Error> errors(static_cast<std::size_t>(pes_));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int pe = 0; pe < pes_; ++pe) {
    threads.emplace_back([&, pe] { errors[static_cast<std::size_t>(pe)] = run_one(pe, call_of(pe)); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

std::vector<shmem::Error> PlayedPes::run(const MovePlan& plan, const Change& change) {
  return run_all([&](int pe) {
    Call call{.cache = cache(pe), .list = &plan};
    if (change) {
      change(pe, call);
    }
    return call;
  });
}

std::vector<shmem::Error> PlayedPes::run(const std::vector<std::int64_t>& pairs, const std::vector<Blocks>& blocks,
                                         const Change& change) {
  std::vector<PairPlan> tables;
  tables.reserve(blocks.size());
  for (int pe = 0; pe < pes_; ++pe) {
    tables.push_back(table(pe, pairs, blocks[static_cast<std::size_t>(pe)]));
  }
  return run_all([&](int pe) {
    Call call{.cache = cache(pe), .table = &tables[static_cast<std::size_t>(pe)]};
    if (change) {
      change(pe, call);
    }
    return call;
  });
}

}  // namespace kv_test
