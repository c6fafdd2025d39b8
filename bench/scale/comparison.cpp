// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/comparison.hpp"

#include <algorithm>
#include <array>

namespace scale {
namespace {

/// So many members in all of the barriers played: enough for a mean, and a matter of a second.
constexpr int kMembersPlayed = 20'000;
constexpr int kMostBarriers = 20;
constexpr int kMostPullers = 708;

}  // namespace

std::optional<Outcome> Comparison::outcome(Method method, const Setting& setting) {
  if (method == Method::kPull && setting.members > kMostPullers) return std::nullopt;
  const auto [found, is_new] = played_.try_emplace({method, setting.members, setting.pes_per_node, setting.skew});
  if (is_new) found->second = played(method, setting);
  return found->second;
}

Outcome Comparison::played(Method method, const Setting& setting) const {
  const Layout layout{.members = setting.members,
                      .pes_per_node = setting.pes_per_node,
                      .ports_per_switch = static_cast<int>(parameters_.ports_per_switch),
                      .radix = static_cast<int>(parameters_.radix)};
  const bool works = setting.skew > 0;
  const Work work{.distribution = works ? parameters_.skew : Distribution::kNone,
                  .mean = setting.skew,
                  .seed = static_cast<std::uint64_t>(parameters_.skew_seed)};
  const int barriers = works ? std::clamp(kMembersPlayed / setting.members, 1, kMostBarriers) : 1;
  return play(*make_program(method, layout), parameters_, layout, work, barriers, method == Method::kOpenMpi);
}

BestSoftware Comparison::best_software(const Setting& setting) {
  // Those that are linear are the best only where a node is all there is.
  constexpr auto kAll = std::to_array<Method>({Method::kCentralCounter, Method::kDissemination,
                                               Method::kRecursiveDoubling, Method::kRadix, Method::kNodeRadix});
  constexpr int kFew = 64;
  std::optional<BestSoftware> best;
  for (const Method method : kAll) {
    const bool linear = method == Method::kCentralCounter;
    const bool twice = method == Method::kNodeRadix && setting.pes_per_node == 1;
    if (twice || (linear && setting.members > kFew)) continue;
    const auto one = outcome(method, setting);
    if (one && (!best || one->after_last < best->outcome.after_last)) best = {method, *one};
  }
  return best.value_or(BestSoftware{});
}

int Comparison::switches(const Setting& setting) const {
  const int ports = (setting.members + setting.pes_per_node - 1) / setting.pes_per_node;
  const int most = static_cast<int>(parameters_.ports_per_switch);
  return (ports + most - 1) / most;
}

}  // namespace scale
