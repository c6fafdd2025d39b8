// SPDX-License-Identifier: Apache-2.0
// The calls that make plans: of lists of moves, of pair tables, and of the sequences that PEs hold.
#include "kv/api/plan.hpp"

#include <fmt/format.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kv/planner/sequence_plan.hpp"
#include "shmem/api/entry.hpp"

using shmem::Result;
using shmem::kv::Mode;
using shmem::kv::MovePlan;
using shmem::kv::PairPlan;
using shmem::kv::Planner;
using shmem::kv::Planning;
using shmem::kv::Sequence;
namespace api = shmem::api;

namespace shmem::api {

int kv_refuse(const char* call, const std::string& problem) {
  return kv_fail(call, {std::errc::invalid_argument, problem});
}

int kv_fail(const char* call, const Error& error) {
  return report_loudly({error.code, fmt::format("shmem: {}: {}", call, error.text)});
}

int kv_out_of_memory(const char* call) {
  return kv_fail(call, {std::errc::not_enough_memory, "out of memory"});
}

}  // namespace shmem::api

namespace {

/// What this PE sends by a plan of pairs, or what is wrong with it; nullptr for another plan.
const Result<MovePlan>* own_of(const shmemx_kv_plan_t& plan) {
  const auto* pairs = std::get_if<PairPlan>(&plan.content);
  return pairs != nullptr ? &pairs->own() : nullptr;
}

std::span<const std::int64_t> numbers(const std::int64_t* first, std::int64_t count) {
  return {first, static_cast<std::size_t>(count)};
}

/// The application destroys it.
template <typename Content>
shmemx_kv_plan_t* hand_out(Content content) {
  return std::unique_ptr<shmemx_kv_plan_t>(new shmemx_kv_plan_t{std::move(content)}).release();
}

}  // namespace

extern "C" int shmemx_kv_plan_create(const shmemx_kv_move_t* moves, size_t count, int mode,
                                     shmemx_kv_plan_t** plan) noexcept try {
  if (plan == nullptr) {
    return api::kv_refuse(__func__, "plan is NULL");
  }
  *plan = nullptr;
  if (moves == nullptr && count != 0) {
    return api::kv_refuse(__func__, fmt::format("moves is NULL, but there are {}", count));
  }
  if (mode != SHMEMX_KV_COPY && mode != SHMEMX_KV_MOVE) {
    return api::kv_refuse(__func__, fmt::format("mode {} is neither SHMEMX_KV_COPY nor SHMEMX_KV_MOVE", mode));
  }
  auto made = MovePlan::create({moves, count}, mode == SHMEMX_KV_MOVE ? Mode::kMove : Mode::kCopy);
  if (!made) {
    return api::kv_fail(__func__, made.error());
  }
  *plan = hand_out(*std::move(made));
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_plan_create");
}
SHMEM_CATCH(int)

extern "C" int shmemx_kv_plan_create_pairs(int n_pes, int me, const int64_t* pair_table, const int64_t* src_blocks,
                                           const int64_t* dst_blocks, int64_t block_count,
                                           shmemx_kv_plan_t** plan) noexcept try {
  if (plan == nullptr) {
    return api::kv_refuse(__func__, "plan is NULL");
  }
  *plan = nullptr;
  if (n_pes < 1 || pair_table == nullptr) {
    return api::kv_refuse(__func__, n_pes < 1 ? fmt::format("n_pes is {}", n_pes) : "pair_table is NULL");
  }
  const bool sends = me >= 0 && me < n_pes && pair_table[2 * std::ptrdiff_t{me} + 1] == shmem::kv::kSend;
  const std::int64_t count = sends ? block_count : 0;
  if (count < 0) {
    return api::kv_refuse(__func__, fmt::format("block_count is {}", count));
  }
  if (count > 0 && (src_blocks == nullptr || dst_blocks == nullptr)) {
    return api::kv_refuse(__func__, fmt::format("{}_blocks is NULL, but block_count is {}",
                                                src_blocks == nullptr ? "src" : "dst", count));
  }
  auto made = PairPlan::create({pair_table, 2 * static_cast<std::size_t>(n_pes)}, me, numbers(src_blocks, count),
                               numbers(dst_blocks, count));
  if (!made) {
    return api::kv_fail(__func__, made.error());
  }
  *plan = hand_out(*std::move(made));
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_plan_create_pairs");
}
SHMEM_CATCH(int)

extern "C" void shmemx_kv_plan_destroy(shmemx_kv_plan_t* plan) noexcept {
  const std::unique_ptr<shmemx_kv_plan_t> owned(plan);
}

extern "C" int shmemx_kv_plan_moves(const shmemx_kv_plan_t* plan, const shmemx_kv_move_t** moves,
                                    size_t* count) noexcept try {
  if (plan == nullptr || moves == nullptr || count == nullptr) {
    return api::kv_refuse(__func__, plan == nullptr ? "plan is NULL" : "moves or count is NULL");
  }
  const auto* own = own_of(*plan);
  if (own != nullptr && !own->has_value()) {
    return api::kv_fail(__func__, own->error());
  }
  const auto list = own != nullptr ? (*own)->moves() : std::get<MovePlan>(plan->content).moves();
  *moves = list.data();
  *count = list.size();
  return 0;
}
SHMEM_CATCH(int)

extern "C" uint64_t shmemx_kv_plan_digest(const shmemx_kv_plan_t* plan) noexcept {
  if (plan == nullptr) {
    return 0;
  }
  const auto* moves = std::get_if<MovePlan>(&plan->content);
  return moves != nullptr ? moves->digest() : std::get_if<PairPlan>(&plan->content)->digest();
}

// ---- Plans that balance tokens ----

namespace {

Result<Planning> planning_of(const shmemx_kv_planning_t& given) {
  if (given.planner != SHMEMX_KV_PAIR && given.planner != SHMEMX_KV_BALANCED) {
    return shmem::invalid(fmt::format("planner {} is neither SHMEMX_KV_PAIR nor SHMEMX_KV_BALANCED", given.planner));
  }
  if (given.mode != SHMEMX_KV_COPY && given.mode != SHMEMX_KV_MOVE) {
    return shmem::invalid(fmt::format("mode {} is neither SHMEMX_KV_COPY nor SHMEMX_KV_MOVE", given.mode));
  }
  if (given.reserved != 0) {
    return shmem::invalid(fmt::format("reserved is {}, not 0", given.reserved));
  }
  return Planning{.planner = given.planner == SHMEMX_KV_PAIR ? Planner::kPair : Planner::kBalanced,
                  .mode = given.mode == SHMEMX_KV_MOVE ? Mode::kMove : Mode::kCopy,
                  .pes = given.n_pes,
                  .geometry = {.blocks = given.blocks, .page = given.page_size},
                  .tolerance = given.tolerance};
}

Result<std::vector<Sequence>> sequences_of(const shmemx_kv_sequence_t* given, std::size_t count) {
  std::vector<Sequence> sequences;
  sequences.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const shmemx_kv_sequence_t& one = given[i];
    if (one.block_count < 0 || one.hash_count < 0) {
      return shmem::invalid(fmt::format("sequence {} has {} blocks and {} hashes", i, one.block_count, one.hash_count));
    }
    if ((one.blocks == nullptr && one.block_count > 0) || (one.hashes == nullptr && one.hash_count > 0)) {
      return shmem::invalid(fmt::format("sequence {}: {} is NULL", i, one.blocks == nullptr ? "blocks" : "hashes"));
    }
    sequences.push_back({.pe = one.pe,
                         .tokens = one.tokens,
                         .blocks = {one.blocks, static_cast<std::size_t>(one.block_count)},
                         .hashes = {one.hashes, static_cast<std::size_t>(one.hash_count)}});
  }
  return sequences;
}

Result<std::unique_ptr<shmemx_kv_plan_t>> make(const shmemx_kv_sequence_t* given, std::size_t count,
                                               const shmemx_kv_planning_t& how) {
  const auto planning = planning_of(how);
  if (!planning) {
    return planning.error();
  }
  const auto sequences = sequences_of(given, count);
  if (!sequences) {
    return sequences.error();
  }
  auto plan = plan_sequences(*sequences, *planning);
  if (!plan) {
    return plan.error();
  }
  auto moves = MovePlan::create(plan->moves, planning->mode);
  if (!moves) {
    return moves.error();
  }
  return std::unique_ptr<shmemx_kv_plan_t>(new shmemx_kv_plan_t{*std::move(moves), std::move(plan->placements)});
}

}  // namespace

extern "C" int shmemx_kv_plan_balance(const shmemx_kv_sequence_t* sequences, size_t count,
                                      const shmemx_kv_planning_t* planning, shmemx_kv_plan_t** plan) noexcept try {
  if (plan == nullptr) {
    return api::kv_refuse(__func__, "plan is NULL");
  }
  *plan = nullptr;
  if (planning == nullptr || (sequences == nullptr && count > 0)) {
    return api::kv_refuse(__func__, planning == nullptr ? "planning is NULL" : "sequences is NULL");
  }
  auto made = make(sequences, count, *planning);
  if (!made) {
    return api::kv_fail(__func__, made.error());
  }
  *plan = made->release();
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_plan_balance");
}
SHMEM_CATCH(int)

extern "C" int shmemx_kv_plan_placement(const shmemx_kv_plan_t* plan, size_t index,
                                        shmemx_kv_placement_t* placement) noexcept try {
  if (plan == nullptr || placement == nullptr) {
    return api::kv_refuse(__func__, plan == nullptr ? "plan is NULL" : "placement is NULL");
  }
  if (index >= plan->placements.size()) {
    return api::kv_refuse(__func__, fmt::format("sequence {} is not one of the {} that the plan was made for (by "
                                                "shmemx_kv_plan_balance)",
                                                index, plan->placements.size()));
  }
  const auto found = plan->placements[index];
  *placement = {
      .pe = found.pe, .blocks = found.blocks.data(), .block_count = static_cast<std::int64_t>(found.blocks.size())};
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_plan_placement");
}
SHMEM_CATCH(int)
