// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/operation.hpp"

namespace kv_program {
namespace {

using shmem::Result;

std::vector<std::int64_t> pair_table(const shmem::kv::PairPlan& plan) {
  std::vector<std::int64_t> table;
  for (const auto& part : plan) {
    table.insert(table.end(), {part.peer, part.operation});
  }
  return table;
}

}  // namespace

Result<std::unique_ptr<Operation>> Operation::create(const Options& options, const Caches& caches) {
  if (options.planner != Planner::kPair || options.mode != Mode::kCopy || options.from || options.to ||
      options.rounds == kAllRounds) {
    return shmem::fail(std::errc::not_supported, "this plan or mode is not there yet");
  }
  const shmemx_kv_options_t how{options.cores, SHMEMX_KV_PATH_AUTO, 0};
  shmemx_kv_op_t* operation = nullptr;
  if (const int error = shmemx_kv_op_create(SHMEM_TEAM_WORLD, &how, &operation); error != 0) {
    return shmem::fail(std::errc{-error}, std::string("cannot make the operator: ") + shmemx_error_text());
  }
  return std::unique_ptr<Operation>{new Operation{caches, operation}};
}

Operation::~Operation() {
  shmemx_kv_op_destroy(operation_);
}

Result<void> Operation::run(const RoundPlan& plan, bool is_empty) {
  const Shape& shape = caches_.shape();
  const shmemx_kv_cache_t cache{caches_.k(),        caches_.v(),     static_cast<std::int32_t>(shape.format),
                                shape.element_size, shape.layers,    shape.blocks,
                                shape.kv_heads,     shape.page_size, shape.head_dim};
  const auto& mine = plan.pairs[static_cast<std::size_t>(shmem_my_pe())];
  const std::vector<std::int64_t> table = pair_table(plan.pairs);
  const auto count = is_empty ? 0 : static_cast<std::int64_t>(mine.source.size());
  shmemx_kv_plan_t* made = nullptr;
  int error = shmemx_kv_plan_create_pairs(shmem_n_pes(), shmem_my_pe(), table.data(), mine.source.data(),
                                          mine.destination.data(), count, &made);
  const std::unique_ptr<shmemx_kv_plan_t, decltype(&shmemx_kv_plan_destroy)> tables{made, shmemx_kv_plan_destroy};
  if (error == 0) {
    error = shmemx_kv_shuffle(operation_, made, &cache);
  }
  if (error != 0) {
    return shmem::fail(std::errc{-error}, shmemx_error_text());
  }
  return {};
}

Result<void> Operation::shuffle(const RoundPlan& plan) {
  return run(plan, false);
}

Result<void> Operation::shuffle_nothing(const RoundPlan& plan) {
  return run(plan, true);
}

}  // namespace kv_program
