// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kv/played_pes.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

namespace kv_test {
namespace {

std::size_t round_to_line(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

PlayedPes::PlayedPes(int pes, const Settings& settings, const Shape& shape, int pes_a_node)
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
    operators_.push_back(*shmem::kv::Operator::create(site(pe), settings, policy, v(pe) + buffer_bytes_));
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
    return shmem::fail(std::errc::timed_out, "some PE did not come");
  }
  return {};
}

/// All have voted when they have met, and nobody votes again before all have read.
shmem::Result<PlayedFar::Vote> PlayedPes::vote(int pe, std::uint64_t digest, bool willing) {
  ballots_[static_cast<std::size_t>(pe)] = {digest, willing};
  if (auto met = sync(); !met) {
    return tl::make_unexpected(met.error());
  }
  PlayedFar::Vote verdict{true, true, 0};
  for (int other = pes_ - 1; other >= 0; --other) {
    const Ballot& ballot = ballots_[static_cast<std::size_t>(other)];
    verdict.alike = verdict.alike && ballot.digest == ballots_[0].digest;
    if (!ballot.willing) {
      verdict.willing = false;
      verdict.other = other;
    }
  }
  if (auto met = sync(); !met) {
    return tl::make_unexpected(met.error());
  }
  return verdict;
}

std::shared_ptr<PlayedFar> PlayedPes::far(int pe) {
  if (pes_a_node_ == 0) {
    return nullptr;
  }
  const auto translate = [this, pe](const void* mine, std::size_t bytes, int other) -> std::byte* {
    const auto offset = reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(k(pe));
    return offset < part_bytes_ && bytes <= part_bytes_ - offset ? k(other) + offset : nullptr;
  };
  return std::make_shared<PlayedFar>(
      PlayedFar::Place{pe, pes_a_node_, translate,
                       [this, pe](std::uint64_t digest, bool willing) { return vote(pe, digest, willing); }},
      traffic);
}

shmem::kv::Site PlayedPes::site(int pe) {
  const auto offset = [this, pe](const void* mine) {
    return reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(k(pe));
  };
  const auto translate = [this, pe, offset](const void* mine, int other) -> std::byte* {
    const bool here = pes_a_node_ == 0 || other / pes_a_node_ == pe / pes_a_node_;
    return here && offset(mine) < part_bytes_ ? k(other) + offset(mine) : nullptr;
  };
  const auto watch = [this](int /*partner*/) {
    const auto end = shmem::Clock::now() + time_limit;
    return [end] { return shmem::Clock::now() < end ? std::errc{} : std::errc::timed_out; };
  };
  const auto is_symmetric = [this, offset](const std::byte* mine, std::size_t bytes) {
    return offset(mine) < part_bytes_ && bytes <= part_bytes_ - offset(mine);
  };
  const auto meet = [this, pe] {
    const auto met = sync();
    if (after_sync) {
      after_sync(pe);
    }
    return met;
  };
  constexpr int kMost = std::numeric_limits<int>::max();
  return {pe,        pes_,
          translate, is_symmetric,
          offset,    watch,
          meet,      [] { return std::string(); },
          kMost,     pes_a_node_ == 0 ? kMost : std::min(pes_a_node_, pes_),
          far(pe)};
}

Cache PlayedPes::cache(int pe) {
  return {shape_, {k(pe), shape_.format == Format::kApart ? v(pe) : nullptr}};
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

TablePlan PlayedPes::table(int pe, const std::vector<std::int64_t>& pairs, const Blocks& blocks) {
  return *TablePlan::create(pairs, pe, blocks.source, blocks.destination);
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
    Call call{cache(pe), &plan, nullptr};
    if (change) {
      change(pe, call);
    }
    return call;
  });
}

std::vector<shmem::Error> PlayedPes::run(const std::vector<std::int64_t>& pairs, const std::vector<Blocks>& blocks,
                                         const Change& change) {
  std::vector<TablePlan> tables;
  tables.reserve(blocks.size());
  for (int pe = 0; pe < pes_; ++pe) {
    tables.push_back(table(pe, pairs, blocks[static_cast<std::size_t>(pe)]));
  }
  return run_all([&](int pe) {
    Call call{cache(pe), nullptr, &tables[static_cast<std::size_t>(pe)]};
    if (change) {
      change(pe, call);
    }
    return call;
  });
}

}  // namespace kv_test
