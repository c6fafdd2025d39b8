// SPDX-License-Identifier: Apache-2.0
// Plans of kv_shuffle: lists of moves, and pair tables.
#include "shmem/api/kv_plan.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <string>

#include "shmem/api/entry.hpp"

using shmem::kv::Mode;
using shmem::kv::Move;
using shmem::kv::MovePlan;
using shmem::kv::TablePlan;
namespace api = shmem::api;

// A program's array of moves is read as one of ours.
static_assert(sizeof(shmemx_kv_move_t) == sizeof(Move) &&
              offsetof(shmemx_kv_move_t, src_pe) == offsetof(Move, source_pe) &&
              offsetof(shmemx_kv_move_t, src_block) == offsetof(Move, source_block) &&
              offsetof(shmemx_kv_move_t, dst_pe) == offsetof(Move, destination_pe) &&
              offsetof(shmemx_kv_move_t, dst_block) == offsetof(Move, destination_block));

namespace shmem::api {

int kv_refuse(const char* call, const std::string& problem) {
  return kv_fail(call, {std::errc::invalid_argument, problem});
}

int kv_fail(const char* call, const Error& error) {
  return report_loudly({error.code, std::string("shmem: ") + call + ": " + error.text});
}

int kv_out_of_memory(const char* call) {
  return kv_fail(call, {std::errc::not_enough_memory, "out of memory"});
}

}  // namespace shmem::api

namespace {

/// The moves that a plan lists, or why it has none.
const shmem::Result<MovePlan>* own_of(const shmemx_kv_plan_t& plan) {
  const auto* table = std::get_if<TablePlan>(&plan.content);
  return table != nullptr ? &table->own() : nullptr;
}

std::span<const std::int64_t> numbers(const std::int64_t* first, std::int64_t count) {
  return {first, static_cast<std::size_t>(count)};
}

/// For the program to destroy.
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
    return api::kv_refuse(__func__, "moves is NULL, but there are " + std::to_string(count));
  }
  if (mode != SHMEMX_KV_COPY && mode != SHMEMX_KV_MOVE) {
    return api::kv_refuse(__func__, "mode " + std::to_string(mode) + " is neither SHMEMX_KV_COPY nor SHMEMX_KV_MOVE");
  }
  auto made = MovePlan::create({reinterpret_cast<const Move*>(moves), count},
                               mode == SHMEMX_KV_MOVE ? Mode::kMove : Mode::kCopy);
  if (!made) {
    return api::kv_fail(__func__, made.error());
  }
  *plan = hand_out(*std::move(made));
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_plan_create");
}

extern "C" int shmemx_kv_plan_create_pairs(int n_pes, int me, const int64_t* pair_table, const int64_t* src_blocks,
                                           const int64_t* dst_blocks, int64_t block_count,
                                           shmemx_kv_plan_t** plan) noexcept try {
  if (plan == nullptr) {
    return api::kv_refuse(__func__, "plan is NULL");
  }
  *plan = nullptr;
  if (n_pes < 1 || pair_table == nullptr) {
    return api::kv_refuse(__func__, n_pes < 1 ? "n_pes is " + std::to_string(n_pes) : "pair_table is NULL");
  }
  const bool sends = me >= 0 && me < n_pes && pair_table[2 * std::ptrdiff_t{me} + 1] == shmem::kv::kSend;
  const std::int64_t count = sends ? block_count : 0;
  if (count < 0) {
    return api::kv_refuse(__func__, "block_count is " + std::to_string(count));
  }
  if (count > 0 && (src_blocks == nullptr || dst_blocks == nullptr)) {
    return api::kv_refuse(__func__, std::string(src_blocks == nullptr ? "src" : "dst") +
                                        "_blocks is NULL, but block_count is " + std::to_string(count));
  }
  auto made = TablePlan::create({pair_table, 2 * static_cast<std::size_t>(n_pes)}, me, numbers(src_blocks, count),
                                numbers(dst_blocks, count));
  if (!made) {
    return api::kv_fail(__func__, made.error());
  }
  *plan = hand_out(*std::move(made));
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_plan_create_pairs");
}

extern "C" void shmemx_kv_plan_destroy(shmemx_kv_plan_t* plan) noexcept {
  const std::unique_ptr<shmemx_kv_plan_t> owned(plan);
}

extern "C" int shmemx_kv_plan_moves(const shmemx_kv_plan_t* plan, const shmemx_kv_move_t** moves,
                                    size_t* count) noexcept {
  if (plan == nullptr || moves == nullptr || count == nullptr) {
    return api::kv_refuse(__func__, plan == nullptr ? "plan is NULL" : "moves or count is NULL");
  }
  const auto* own = own_of(*plan);
  if (own != nullptr && !own->has_value()) {
    return api::kv_fail(__func__, own->error());
  }
  const auto list = own != nullptr ? (*own)->moves() : std::get<MovePlan>(plan->content).moves();
  *moves = reinterpret_cast<const shmemx_kv_move_t*>(list.data());
  *count = list.size();
  return 0;
}

extern "C" uint64_t shmemx_kv_plan_digest(const shmemx_kv_plan_t* plan) noexcept {
  if (plan == nullptr) {
    return 0;
  }
  const auto* moves = std::get_if<MovePlan>(&plan->content);
  return moves != nullptr ? moves->digest() : std::get_if<TablePlan>(&plan->content)->digest();
}
