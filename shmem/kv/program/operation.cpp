// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/operation.hpp"

#include "shmemx.h"

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
  const bool has_planes = options.shape.format == Format::kApart || options.shape.format == Format::kByLayer;
  if (!has_planes || options.planner != Planner::kPair || options.mode != Mode::kCopy || options.from || options.to ||
      options.rounds == kAllRounds) {
    return shmem::fail(std::errc::not_supported, "this format, plan or mode is not there yet");
  }
  shmemx_kv_shuffle_t* operation = nullptr;
  if (const int error = shmemx_kv_shuffle_create(options.cores, &operation); error != 0) {
    return shmem::fail(std::errc{-error}, std::string("cannot make the operator: ") + shmemx_error_text());
  }
  return std::unique_ptr<Operation>{new Operation{caches, operation}};
}

Operation::~Operation() {
  shmemx_kv_shuffle_destroy(operation_);
}

Result<void> Operation::run(const RoundPlan& plan, bool is_empty) {
  const Shape& shape = caches_.shape();
  const shmemx_kv_shape_t layer{shape.blocks, shape.kv_heads, shape.page_size, shape.head_dim, shape.element_size};
  const auto& mine = plan.pairs[static_cast<std::size_t>(shmem_my_pe())];
  const std::vector<std::int64_t> table = pair_table(plan.pairs);
  const auto count = is_empty ? 0 : static_cast<std::int64_t>(mine.source.size());
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const int error = shmemx_kv_shuffle_run(operation_, caches_.bytes({i, Cache::kK}, 0).data(),
                                            caches_.bytes({i, Cache::kV}, 0).data(), &layer, table.data(),
                                            mine.source.data(), mine.destination.data(), count);
    if (error != 0) {
      return shmem::fail(std::errc{-error}, shmemx_error_text());
    }
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
