// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/table_plan.hpp"

#include <algorithm>
#include <string>

#include "shmem/kv/digest.hpp"

namespace shmem::kv {
namespace {

tl::unexpected<Error> invalid(std::string what) {
  return fail(std::errc::invalid_argument, std::move(what));
}

Result<void> check_blocks(std::span<const std::int64_t> blocks, const char* name) {
  const auto bad = std::find_if(blocks.begin(), blocks.end(), [](std::int64_t block) { return block < 0; });
  if (bad == blocks.end()) {
    return {};
  }
  return invalid(std::string(name) + "[" + std::to_string(bad - blocks.begin()) + "] is " + std::to_string(*bad));
}

}  // namespace

Result<TablePlan> TablePlan::create(std::span<const std::int64_t> table, int me, std::span<const std::int64_t> source,
                                    std::span<const std::int64_t> destination) {
  TablePlan plan{table, me};
  if (me < 0 || me >= plan.table().pes()) {
    return invalid("PE " + std::to_string(me) + " is not in 0.." + std::to_string(plan.table().pes() - 1));
  }
  plan.own_ = plan.read(source, destination);
  Digest digest;
  digest.add(plan.numbers_.data(), plan.numbers_.size() * sizeof plan.numbers_[0]);
  plan.digest_ = digest.value();
  return plan;
}

Result<MovePlan> TablePlan::read(std::span<const std::int64_t> source,
                                 std::span<const std::int64_t> destination) const {
  if (auto ok = table().check(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  // Others may have tables, too, of a plan that came to nothing.
  if (table().role(me_) != Role::kSender) {
    return MovePlan{};
  }
  auto ok = check_blocks(source, "src_block_table");
  if (ok) {
    ok = check_blocks(destination, "dst_block_table");
  }
  if (!ok) {
    return tl::make_unexpected(ok.error());
  }
  std::vector<Move> moves;
  moves.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    moves.push_back({me_, source[i], table().peer(me_), destination[i]});
  }
  return MovePlan::create(moves, Mode::kCopy);
}

}  // namespace shmem::kv
