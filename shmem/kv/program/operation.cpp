// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/operation.hpp"

namespace kv_program {
namespace {

using shmem::Result;

static_assert(static_cast<int>(Format::kApart) == SHMEMX_KV_APART &&
              static_cast<int>(Format::kByLayer) == SHMEMX_KV_BY_LAYER &&
              static_cast<int>(Format::kInterleaved) == SHMEMX_KV_INTERLEAVED &&
              static_cast<int>(Format::kByBlock) == SHMEMX_KV_BY_BLOCK &&
              static_cast<int>(Format::kLatent) == SHMEMX_KV_LATENT);
static_assert(static_cast<int>(Path::kAuto) == SHMEMX_KV_PATH_AUTO &&
              static_cast<int>(Path::kDirect) == SHMEMX_KV_PATH_DIRECT &&
              static_cast<int>(Path::kScratch) == SHMEMX_KV_PATH_SCRATCH);

tl::unexpected<shmem::Error> library_failed(int error, const std::string& what = "") {
  return shmem::fail(std::errc{-error}, what + shmemx_error_text());
}

/// The first `count` of this PE's blocks, if it sends.
int make_pairs(const shmem::kv::PairPlan& pairs, std::size_t count, shmemx_kv_plan_t** plan) {
  std::vector<std::int64_t> table;
  for (const auto& part : pairs) {
    table.insert(table.end(), {part.peer, part.operation});
  }
  const auto& mine = pairs[static_cast<std::size_t>(shmem_my_pe())];
  return shmemx_kv_plan_create_pairs(shmem_n_pes(), shmem_my_pe(), table.data(), mine.source.data(),
                                     mine.destination.data(), static_cast<std::int64_t>(count), plan);
}

int make_moves(const std::vector<shmem::kv::Move>& moves, bool clears, shmemx_kv_plan_t** plan) {
  std::vector<shmemx_kv_move_t> list;
  list.reserve(moves.size());
  for (const auto& move : moves) {
    list.push_back({move.source_pe, move.source_block, move.destination_pe, move.destination_block});
  }
  return shmemx_kv_plan_create(list.data(), list.size(), clears ? SHMEMX_KV_MOVE : SHMEMX_KV_COPY, plan);
}

}  // namespace

Result<std::unique_ptr<Operation>> Operation::create(const Options& options, const Caches& caches) {
  const shmemx_kv_options_t how{options.cores, static_cast<std::int32_t>(options.path), 0};
  shmemx_kv_op_t* operation = nullptr;
  if (const int error = shmemx_kv_op_create(SHMEM_TEAM_WORLD, &how, &operation); error != 0) {
    return library_failed(error, "cannot make the operator: ");
  }
  return std::unique_ptr<Operation>{new Operation{caches, options.mode == Mode::kMove, operation}};
}

Operation::~Operation() {
  shmemx_kv_op_destroy(operation_);
}

Result<void> Operation::prepare(const RoundPlan& plan) {
  plan_.reset();
  nothing_.reset();
  shmemx_kv_plan_t* made = nullptr;
  shmemx_kv_plan_t* empty = nullptr;
  int error = 0;
  if (plan.pairs.empty()) {
    error = make_moves(plan.moves, clears_, &made);
    error = error == 0 ? make_moves({}, clears_, &empty) : error;
  } else {
    error = make_pairs(plan.pairs, plan.pairs[static_cast<std::size_t>(shmem_my_pe())].source.size(), &made);
    error = error == 0 ? make_pairs(plan.pairs, 0, &empty) : error;
  }
  plan_.reset(made);
  nothing_.reset(empty);
  return error == 0 ? Result<void>{} : library_failed(error);
}

Result<void> Operation::run(const Plan& plan) {
  const Shape& shape = caches_.shape();
  const shmemx_kv_cache_t cache{caches_.k(),        caches_.v(),     static_cast<std::int32_t>(shape.format),
                                shape.element_size, shape.layers,    shape.blocks,
                                shape.kv_heads,     shape.page_size, shape.head_dim};
  const int error = shmemx_kv_shuffle(operation_, plan.get(), &cache);
  return error == 0 ? Result<void>{} : library_failed(error);
}

}  // namespace kv_program
