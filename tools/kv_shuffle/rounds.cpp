// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/rounds.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace kv_program {

CopyThreads::CopyThreads(int threads) : count_(threads) {
  for (int thread = 1; thread < threads; ++thread) {
    threads_.emplace_back([this, thread] { serve(thread); });
  }
}

CopyThreads::~CopyThreads() {
  {
    const std::lock_guard lock{mutex_};
    work_ = nullptr;
    ++runs_;
  }
  started_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void CopyThreads::run(const Work& work) {
  {
    const std::lock_guard lock{mutex_};
    work_ = &work;
    working_ = count_ - 1;
    ++runs_;
  }
  started_.notify_all();
  work(0, count_);
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [this] { return working_ == 0; });
}

void CopyThreads::serve(int thread) {
  for (unsigned run = 1;; ++run) {
    std::unique_lock lock{mutex_};
    started_.wait(lock, [&] { return runs_ >= run; });
    if (work_ == nullptr) {
      return;
    }
    lock.unlock();
    (*work_)(thread, count_);
    lock.lock();
    if (--working_ == 0) {
      ended_.notify_one();
    }
  }
}

namespace {

static_assert(static_cast<int>(Planner::kPair) == SHMEMX_KV_PAIR &&
              static_cast<int>(Planner::kBalanced) == SHMEMX_KV_BALANCED &&
              static_cast<int>(Mode::kCopy) == SHMEMX_KV_COPY && static_cast<int>(Mode::kMove) == SHMEMX_KV_MOVE);
static_assert(static_cast<int>(Path::kAuto) == SHMEMX_KV_PATH_AUTO &&
              static_cast<int>(Path::kDirect) == SHMEMX_KV_PATH_DIRECT &&
              static_cast<int>(Path::kScratch) == SHMEMX_KV_PATH_SCRATCH);

/// A plan of the first `count` blocks that each PE sends: of this PE's tables.
int make_pairs(const PairPlan& pairs, std::size_t count, PlanHandle& plan) {
  std::vector<std::int64_t> table;
  for (const PairRow& row : pairs) {
    table.insert(table.end(), {row.partner, row.operation});
  }
  const PairRow& mine = pairs[static_cast<std::size_t>(shmem_my_pe())];
  shmemx_kv_plan_t* made = nullptr;
  const int error = shmemx_kv_plan_create_pairs(shmem_n_pes(), shmem_my_pe(), table.data(), mine.source.data(),
                                                mine.destination.data(), static_cast<std::int64_t>(count), &made);
  plan.reset(made);
  return error;
}

}  // namespace

Result<std::unique_ptr<Operation>> Operation::create(const Options& options, const Caches& caches) {
  const shmemx_kv_options_t settings{
      .cores = options.cores, .path = static_cast<std::int32_t>(options.path), .staging_bytes = 0};
  shmemx_kv_op_t* operation = nullptr;
  if (const int error = shmemx_kv_op_create(SHMEM_TEAM_WORLD, &settings, &operation); error != 0) {
    return library_error(error, "cannot make the operator: ");
  }
  return std::unique_ptr<Operation>{new Operation{caches, static_cast<int>(options.mode), operation}};
}

Operation::~Operation() {
  shmemx_kv_op_destroy(operation_);
}

Result<void> Operation::prepare(const RoundPlan& plan) {
  plan_ = nullptr;
  nothing_.reset();
  int error = 0;
  if (plan.pairs.empty()) {
    plan_ = plan.plan.get();
    shmemx_kv_plan_t* made = nullptr;
    error = shmemx_kv_plan_create(nullptr, 0, mode_, &made);
    nothing_.reset(made);
  } else {
    error = make_pairs(plan.pairs, plan.pairs[static_cast<std::size_t>(shmem_my_pe())].source.size(), pairs_);
    plan_ = pairs_.get();
    error = error == 0 ? make_pairs(plan.pairs, 0, nothing_) : error;
  }
  return error == 0 ? Result<void>{} : library_error(error);
}

Result<void> Operation::run(const shmemx_kv_plan_t* plan) {
  const int error = shmemx_kv_shuffle(operation_, plan, &cache_);
  return error == 0 ? Result<void>{} : library_error(error);
}

namespace {

using SteadyClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

}  // namespace

Result<std::unique_ptr<Rounds>> Rounds::create(const Options& options, const Caches& caches) {
  auto operation = Operation::create(options, caches);
  if (!operation) {
    return operation.error();
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
  // In pairs the sender copies; otherwise the cores of sender and receiver share the work.
  const bool receivers_copy = plan.pairs.empty();
  const auto moves = plan.moves();
  caches_.for_each_part([&](Part part) {
    bool by_receiver = false;
    for (const auto& move : moves) {
      if ((by_receiver ? move.dst_pe : move.src_pe) == shmem_my_pe()) {
        parts.emplace_back(caches_.bytes(part, by_receiver ? move.dst_block : move.src_block));
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
      std::memcpy(copies_.data() + i * parts[i].size(), parts[i].data(), parts[i].size());
    }
  };
  for (int i = 0; i < options_.repeats && !parts.empty(); ++i) {
    threads_.run(work);
  }
}

Result<RoundResult> Rounds::run(const RoundPlan& plan) {
  const auto parts = parts_to_copy(plan);
  // Not timed, because it touches new memory.
  copies_.resize(std::max(copies_.size(), parts.empty() ? 0 : parts.size() * parts.front().size()));
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
      return step->error();
    }
  }
  RoundResult result{.before = plan.before,
                     .after = plan.after,
                     .blocks = static_cast<std::int64_t>(plan.moves().size()),
                     .spared = plan.spared};
  if (result.blocks > 0) {
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
