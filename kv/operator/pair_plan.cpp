// SPDX-License-Identifier: Apache-2.0
#include "kv/operator/pair_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shmem::kv {
namespace {

Error bad_table(const std::string& what) {
  return invalid("global_shuffle_table: " + what);
}

std::string row(const PairTable& table, std::int64_t pe) {
  const int index = static_cast<int>(pe);
  return fmt::format("row {} {{{}, {}}}", pe, table.peer(index), table.operation(index) == kSend ? "send" : "receive");
}

Result<void> check_row(const PairTable& table, int pe) {
  const std::int64_t peer = table.peer(pe);
  if (!table.in_range(peer)) {
    return bad_table(fmt::format("{} names a PE that is not in 0..{}", row(table, pe), table.pes() - 1));
  }
  const int other = static_cast<int>(peer);
  if (table.peer(other) != pe) {
    return bad_table(fmt::format("{} and {} do not name each other", row(table, pe), row(table, peer)));
  }
  if (table.operation(pe) == kSend && table.operation(other) == kSend) {
    return bad_table(
        other == pe ? row(table, pe) + " sends to itself"
                    : fmt::format("{} and {} both send; one of a pair receives", row(table, pe), row(table, peer)));
  }
  return {};
}

}  // namespace

Result<void> PairTable::check() const {
  for (int pe = 0; pe < pes(); ++pe) {
    if (auto ok = check_row(*this, pe); !ok) {
      return ok;
    }
  }
  return {};
}

Role PairTable::role(int pe) const {
  if (operation(pe) == kSend) {
    return Role::kSender;
  }
  return operation(static_cast<int>(peer(pe))) == kSend ? Role::kReceiver : Role::kIdle;
}

int PairTable::senders() const {
  int senders = 0;
  for (int pe = 0; pe < pes(); ++pe) {
    senders += role(pe) == Role::kSender ? 1 : 0;
  }
  return senders;
}

namespace {

Result<void> check_blocks(std::span<const std::int64_t> blocks, const char* name) {
  const auto bad = std::find_if(blocks.begin(), blocks.end(), [](std::int64_t block) { return block < 0; });
  if (bad == blocks.end()) {
    return {};
  }
  return invalid(fmt::format("{}[{}] is {}", name, bad - blocks.begin(), *bad));
}

}  // namespace

Result<PairPlan> PairPlan::create(std::span<const std::int64_t> table, int me, std::span<const std::int64_t> source,
                                  std::span<const std::int64_t> destination) {
  PairPlan plan{table, me};
  if (me < 0 || me >= plan.table().pes()) {
    return invalid(fmt::format("PE {} is not in 0..{}", me, plan.table().pes() - 1));
  }
  plan.own_ = plan.read(source, destination);
  Digest digest;
  digest.add(plan.numbers_.data(), plan.numbers_.size() * sizeof plan.numbers_[0]);
  plan.digest_ = digest.value();
  return plan;
}

Result<MovePlan> PairPlan::read(std::span<const std::int64_t> source, std::span<const std::int64_t> destination) const {
  if (auto ok = table().check(); !ok) {
    return ok.error();
  }
  // PEs that do not send may have block tables as well.
  if (table().role(me_) != Role::kSender) {
    return MovePlan{};
  }
  auto ok = check_blocks(source, "src_block_table");
  if (ok) {
    ok = check_blocks(destination, "dst_block_table");
  }
  if (!ok) {
    return ok.error();
  }
  std::vector<Move> moves;
  moves.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    moves.push_back({.src_pe = me_, .src_block = source[i], .dst_pe = table().peer(me_), .dst_block = destination[i]});
  }
  return MovePlan::create(moves, Mode::kCopy);
}

}  // namespace shmem::kv
