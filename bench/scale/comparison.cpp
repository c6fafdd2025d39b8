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

std::optional<Outcome> outcome_of(Method method, const Setting& setting) {
  if (method == Method::kPull && setting.members > kMostPullers) return std::nullopt;
  const Parameters& parameters = setting.parameters;
  const Layout layout{.members = setting.members,
                      .pes_per_node = setting.pes_per_node,
                      .ports_per_switch = static_cast<int>(parameters.ports_per_switch),
                      .radix = static_cast<int>(parameters.radix)};
  const bool works = setting.skew > 0;
  const Work work{.distribution = works ? parameters.skew : Distribution::kNone,
                  .mean = setting.skew,
                  .seed = static_cast<std::uint64_t>(parameters.skew_seed)};
  const int barriers = works ? std::clamp(kMembersPlayed / setting.members, 1, kMostBarriers) : 1;
  return play(*make_program(method, layout), parameters, layout, work, barriers, method == Method::kOpenMpi);
}

BestSoftware best_software(const Setting& setting) {
  // Those that are linear are the best only where a node is all there is.
  constexpr auto kAll = std::to_array<Method>({Method::kCentralCounter, Method::kDissemination,
                                               Method::kRecursiveDoubling, Method::kRadix, Method::kNodeRadix});
  constexpr int kFew = 64;
  BestSoftware best;
  best.outcome.after_last = -1;
  for (const Method method : kAll) {
    const bool linear = method == Method::kCentralCounter;
    const bool twice = method == Method::kNodeRadix && setting.pes_per_node == 1;
    if (twice || (linear && setting.members > kFew)) continue;
    const auto outcome = outcome_of(method, setting);
    if (outcome && (best.outcome.after_last < 0 || outcome->after_last < best.outcome.after_last)) {
      best = {method, *outcome};
    }
  }
  return best;
}

int switches_for(const Setting& setting) {
  const int ports = (setting.members + setting.pes_per_node - 1) / setting.pes_per_node;
  const int most = static_cast<int>(setting.parameters.ports_per_switch);
  return (ports + most - 1) / most;
}

}  // namespace scale
