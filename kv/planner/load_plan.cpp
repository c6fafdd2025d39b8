// SPDX-License-Identifier: Apache-2.0
#include "kv/planner/load_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/size_text.hpp"
#include "kv/planner/sequence_plan.hpp"

namespace shmem::kv {
namespace {

/// Twice as many blocks must be numbers of a cache.
constexpr std::size_t kMostKeys = std::size_t{1} << 30;

Error cannot(const std::string& what) {
  return fail(std::errc::invalid_argument, "cannot plan: " + what);
}

Result<void> check_members(std::span<const MemberShare> members) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].weight < 0 || members[i].weight > kMostWeight || members[i].room < 0) {
      return cannot(fmt::format("member {} has the weight {} and room for {} blocks; weights are 0 to {}", i,
                                members[i].weight, members[i].room, kMostWeight));
    }
    sum += members[i].weight;
  }
  return sum > 0 ? Result<void>() : cannot("no member has a weight that is not 0");
}

/// `most`: the most load that can be counted.
Result<void> check_loads(std::span<const MemberLoad> loads, std::size_t members, std::int64_t most) {
  std::size_t keys = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const MemberLoad& one = loads[i];
    if (one.member >= members) {
      return cannot(fmt::format("load {} is of member {}, which is not in 0..{}", i, one.member, members - 1));
    }
    if (one.load < 0 || one.load > most || one.keys.size() > kMostKeys - keys) {
      return cannot(fmt::format("load {} is {}, with {}; all loads are more than can be counted", i, one.load,
                                base::count(one.keys.size(), "block")));
    }
    if (one.load > 0 && one.keys.empty()) {
      return cannot(fmt::format("load {} has no blocks", i));
    }
    most -= one.load;
    keys += one.keys.size();
  }
  return {};
}

/// The loads in the words of the planner. A block has the same number everywhere, which is its hash as well: that of
/// its key among all different keys.
class Loads {
 public:
  explicit Loads(std::span<const MemberLoad> loads) {
    std::size_t count = 0;
    for (const MemberLoad& load : loads) {
      count += load.keys.size();
    }
    numbers_.reserve(count);
    hashes_.reserve(count);  // sequences_ has views of both
    std::unordered_map<std::string_view, std::int64_t> known(count);
    for (const MemberLoad& load : loads) {
      const std::size_t begin = numbers_.size();
      for (const std::string_view key : load.keys) {
        const std::int64_t number = known.emplace(key, static_cast<std::int64_t>(known.size())).first->second;
        numbers_.push_back(number);
        hashes_.push_back(static_cast<std::uint64_t>(number));
      }
      sequences_.push_back({.pe = static_cast<std::int64_t>(load.member),
                            .tokens = load.load,
                            .blocks = std::span(numbers_).subspan(begin),
                            .hashes = std::span(hashes_).subspan(begin)});
      most_a_block_ = std::max(most_a_block_, load.keys.empty() ? 1 : pages_of(load.load, ssize(load.keys)));
    }
    keys_ = static_cast<std::int64_t>(known.size());
  }

  [[nodiscard]] std::span<const Sequence> sequences() const { return sequences_; }
  /// Each member has numbers enough for all blocks besides its own.
  [[nodiscard]] Geometry geometry() const {
    return {.blocks = std::max<std::int64_t>(2 * keys_, 1), .page = most_a_block_};
  }

 private:
  static std::int64_t ssize(std::span<const std::string_view> keys) { return static_cast<std::int64_t>(keys.size()); }

  std::vector<std::int64_t> numbers_;
  std::vector<std::uint64_t> hashes_;
  std::vector<Sequence> sequences_;
  std::int64_t keys_ = 0;
  std::int64_t most_a_block_ = 1;
};

/// The planner's moves are in the order of loads and their blocks, without those that the receiver has or gets anyway.
std::vector<LoadMove> moves_of(const SequencePlan& plan, std::span<const Sequence> loads) {
  std::vector<LoadMove> moves;
  auto next = plan.moves.begin();
  for (std::size_t load = 0; load < loads.size(); ++load) {
    const std::int64_t to = plan.placements[load].pe;
    for (std::size_t key = 0; to != loads[load].pe && key < loads[load].blocks.size(); ++key) {
      if (next != plan.moves.end() && next->src_pe == loads[load].pe && next->dst_pe == to &&
          next->src_block == loads[load].blocks[key]) {
        moves.push_back({static_cast<std::size_t>(next->src_pe), static_cast<std::size_t>(to), load, key});
        ++next;
      }
    }
  }
  std::stable_sort(moves.begin(), moves.end(), [](const LoadMove& a, const LoadMove& b) { return a.to < b.to; });
  return moves;
}

}  // namespace

Result<LoadPlan> plan_loads(std::span<const MemberShare> members, std::span<const MemberLoad> loads, double tolerance) {
  if (auto ok = check_members(members); !ok) {
    return ok.error();
  }
  Planning planning{.pes = static_cast<std::int64_t>(members.size()), .tolerance = tolerance};
  std::int64_t divisor = 0;
  for (const MemberShare& member : members) {
    divisor = std::gcd(divisor, member.weight);
  }
  std::int64_t unit = 0;
  for (const MemberShare& member : members) {
    planning.weights.push_back(member.weight / divisor);
    planning.room.push_back(member.room);
    unit += planning.weights.back();
  }
  if (auto ok = check_loads(loads, members.size(), kMostTokensTimesUnit / unit); !ok) {
    return ok.error();
  }
  if (loads.empty()) {
    return LoadPlan{};
  }
  const Loads given(loads);
  planning.geometry = given.geometry();
  const auto plan = plan_sequences(given.sequences(), planning);
  if (!plan) {
    return plan.error();
  }
  LoadPlan result{.moves = moves_of(*plan, given.sequences())};
  for (std::size_t load = 0; load < loads.size(); ++load) {
    result.owners.push_back(static_cast<std::size_t>(plan->placements[load].pe));
  }
  return result;
}

}  // namespace shmem::kv
