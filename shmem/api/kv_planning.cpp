// SPDX-License-Identifier: Apache-2.0
// Plans of kv_shuffle from what sequences PEs hold.
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "shmem/api/entry.hpp"
#include "shmem/api/kv_plan.hpp"
#include "shmem/kv/sequence_plan.hpp"

using shmem::Result;
using shmem::kv::Mode;
using shmem::kv::MovePlan;
using shmem::kv::Planner;
using shmem::kv::Planning;
using shmem::kv::Sequence;
namespace api = shmem::api;

namespace {

tl::unexpected<shmem::Error> invalid(std::string what) {
  return shmem::fail(std::errc::invalid_argument, std::move(what));
}

Result<Planning> planning_of(const shmemx_kv_planning_t& given) {
  if (given.planner != SHMEMX_KV_PAIR && given.planner != SHMEMX_KV_BALANCED) {
    return invalid("planner " + std::to_string(given.planner) + " is neither SHMEMX_KV_PAIR nor SHMEMX_KV_BALANCED");
  }
  if (given.mode != SHMEMX_KV_COPY && given.mode != SHMEMX_KV_MOVE) {
    return invalid("mode " + std::to_string(given.mode) + " is neither SHMEMX_KV_COPY nor SHMEMX_KV_MOVE");
  }
  if (given.reserved != 0) {
    return invalid("reserved is " + std::to_string(given.reserved) + ", not 0");
  }
  return Planning{given.planner == SHMEMX_KV_PAIR ? Planner::kPair : Planner::kBalanced,
                  given.mode == SHMEMX_KV_MOVE ? Mode::kMove : Mode::kCopy,
                  given.n_pes,
                  {given.blocks, given.page_size},
                  given.tolerance};
}

Result<std::vector<Sequence>> sequences_of(const shmemx_kv_sequence_t* given, std::size_t count) {
  std::vector<Sequence> sequences;
  sequences.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const shmemx_kv_sequence_t& one = given[i];
    if (one.block_count < 0 || one.hash_count < 0) {
      return invalid("sequence " + std::to_string(i) + " has " + std::to_string(one.block_count) + " blocks and " +
                     std::to_string(one.hash_count) + " hashes");
    }
    if ((one.blocks == nullptr && one.block_count > 0) || (one.hashes == nullptr && one.hash_count > 0)) {
      return invalid("sequence " + std::to_string(i) + ": " + (one.blocks == nullptr ? "blocks" : "hashes") +
                     " is NULL");
    }
    sequences.push_back({one.pe,
                         one.tokens,
                         {one.blocks, static_cast<std::size_t>(one.block_count)},
                         {one.hashes, static_cast<std::size_t>(one.hash_count)}});
  }
  return sequences;
}

Result<std::unique_ptr<shmemx_kv_plan_t>> make(const shmemx_kv_sequence_t* given, std::size_t count,
                                               const shmemx_kv_planning_t& how) {
  const auto planning = planning_of(how);
  if (!planning) {
    return tl::make_unexpected(planning.error());
  }
  const auto sequences = sequences_of(given, count);
  if (!sequences) {
    return tl::make_unexpected(sequences.error());
  }
  auto plan = plan_sequences(*sequences, *planning);
  if (!plan) {
    return tl::make_unexpected(plan.error());
  }
  auto moves = MovePlan::create(plan->moves, planning->mode);
  if (!moves) {
    return tl::make_unexpected(moves.error());
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

extern "C" int shmemx_kv_plan_placement(const shmemx_kv_plan_t* plan, size_t index,
                                        shmemx_kv_placement_t* placement) noexcept try {
  if (plan == nullptr || placement == nullptr) {
    return api::kv_refuse(__func__, plan == nullptr ? "plan is NULL" : "placement is NULL");
  }
  if (index >= plan->placements.size()) {
    return api::kv_refuse(__func__, "sequence " + std::to_string(index) + " is none of the " +
                                        std::to_string(plan->placements.size()) +
                                        " that the plan was made for (by shmemx_kv_plan_balance)");
  }
  const auto found = plan->placements[index];
  *placement = {found.pe, found.blocks.data(), static_cast<std::int64_t>(found.blocks.size())};
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_plan_placement");
}
