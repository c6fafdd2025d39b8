// SPDX-License-Identifier: Apache-2.0
// shmemx_exchange_plan.
#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kv/exchange/call_errors.hpp"
#include "kv/planner/load_plan.hpp"
#include "shmemx_exchange.h"

using shmem::Result;
using shmem::kv::MemberLoad;
using shmem::kv::MemberShare;

namespace {

/// The call returns their number.
constexpr std::size_t kMostKeys = std::size_t{1} << 30;

shmem::Error wrong(std::string what) {
  return shmem::fail(std::errc::invalid_argument, std::move(what));
}

/// Large numbers count as the largest that the planner knows.
std::int64_t number_of(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
}

/// The arguments in the form of the planner.
class LoadArguments {
 public:
  static Result<LoadArguments> make(std::span<const shmemx_exchange_share_t> members,
                                    std::span<const shmemx_exchange_load_t> loads) {
    LoadArguments made;
    if (auto ok = made.take_members(members); !ok) {
      return ok.error();
    }
    std::size_t keys = 0;
    for (const auto& load : loads) {
      if (load.count > kMostKeys - keys) {
        return wrong("the loads have more than 2^30 keys");
      }
      keys += load.count;
    }
    made.keys_.reserve(keys);  // loads_ has views of it
    for (std::size_t i = 0; i < loads.size(); ++i) {
      if (auto ok = made.take_load(i, loads[i]); !ok) {
        return ok.error();
      }
    }
    return made;
  }

  [[nodiscard]] std::span<const MemberShare> members() const { return members_; }
  [[nodiscard]] std::span<const MemberLoad> loads() const { return loads_; }

 private:
  Result<void> take_members(std::span<const shmemx_exchange_share_t> members) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i].reserved != 0) {
        return wrong(fmt::format("reserved of member {} is {}, not 0", i, members[i].reserved));
      }
      if (!numbers_.emplace(members[i].member, i).second) {
        return wrong(fmt::format("members {} and {} are both {}", numbers_[members[i].member], i, members[i].member));
      }
      members_.push_back({.weight = members[i].weight, .room = number_of(members[i].room)});
    }
    return {};
  }

  Result<void> take_load(std::size_t number, const shmemx_exchange_load_t& load) {
    const auto member = numbers_.find(load.member);
    if (member == numbers_.end()) {
      return wrong(
          fmt::format("load {} is of {}, which is not one of the {} members", number, load.member, numbers_.size()));
    }
    if (load.keys == nullptr && load.count > 0) {
      return wrong(fmt::format("keys of load {} is NULL", number));
    }
    const std::size_t begin = keys_.size();
    for (std::size_t i = 0; i < load.count; ++i) {
      const shmemx_exchange_key_t& key = load.keys[i];
      if (key.data == nullptr || key.bytes == 0 || key.bytes > SHMEMX_EXCHANGE_MOST_KEY_BYTES) {
        return wrong(fmt::format("key {} of load {} has {} bytes; keys have 1 to {}", i, number,
                                 key.data == nullptr ? 0 : key.bytes, int{SHMEMX_EXCHANGE_MOST_KEY_BYTES}));
      }
      keys_.emplace_back(static_cast<const char*>(key.data), key.bytes);
    }
    loads_.push_back({.member = member->second,
                      .load = number_of(load.load),
                      .keys = std::span<const std::string_view>(keys_).subspan(begin)});
    return {};
  }

  std::unordered_map<std::uint64_t, std::size_t> numbers_;  // of members, by id
  std::vector<MemberShare> members_;
  std::vector<std::string_view> keys_;
  std::vector<MemberLoad> loads_;
};

}  // namespace

extern "C" int shmemx_exchange_plan(const shmemx_exchange_share_t* members, size_t member_count,
                                    shmemx_exchange_load_t* loads, size_t load_count, double tolerance,
                                    shmemx_exchange_move_t* moves, size_t capacity) noexcept try {
  if (members == nullptr || (loads == nullptr && load_count > 0) || (moves == nullptr && capacity > 0)) {
    return shmem::exchange::refuse(__func__, "members, loads or moves is NULL");
  }
  const auto given = LoadArguments::make({members, member_count}, {loads, load_count});
  if (!given) {
    return shmem::exchange::refuse(__func__, given.error().text);
  }
  const auto plan = plan_loads(given->members(), given->loads(), tolerance);
  if (!plan) {
    return shmem::exchange::refuse(__func__, plan.error().text);
  }
  for (std::size_t i = 0; i < load_count; ++i) {
    loads[i].to = members[plan->owners[i]].member;
  }
  for (std::size_t i = 0; i < std::min(capacity, plan->moves.size()); ++i) {
    const auto& move = plan->moves[i];
    moves[i] = {.from = members[move.from].member, .to = members[move.to].member, .load = move.load, .key = move.key};
  }
  return static_cast<int>(plan->moves.size());
}
SHMEM_EXCHANGE_CATCH

SHMEM_EXCHANGE_SECOND_NAME(plan)
