// SPDX-License-Identifier: Apache-2.0
// From measured collectives to the table that SHMEM_COLLECTIVE_TUNING names.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "shmem/collective/tuning.hpp"

namespace bench {

/// Times of one collective over its bytes, by way, in parts of a barrier's.
struct MeasuredCollective {
  shmem::Collective collective{};
  int pes = 0;
  bool crowded = false;
  std::map<std::uint64_t, double> carried{};
  std::map<std::uint64_t, double> direct{};
  std::map<std::uint64_t, double> split{};
};

/// Noise is less than this: a way is worth it if it is faster by so much.
constexpr double kWorthwhileWay = 0.95;

/// Carried up to the last size before one at which that is slower than direct; split from the size from which on that
/// is always faster, if there is one.
inline shmem::CollectiveLimits best_limits(const MeasuredCollective& measured) {
  shmem::CollectiveLimits limits;
  for (const auto& [bytes, time] : measured.carried) {
    const auto direct = measured.direct.find(bytes);
    if (bytes > shmem::kMostCarried || direct == measured.direct.end() || time > direct->second) break;
    limits.carried = bytes;
  }
  for (auto at = measured.split.rbegin(); at != measured.split.rend(); ++at) {
    const auto direct = measured.direct.find(at->first);
    if (direct == measured.direct.end() || at->second > kWorthwhileWay * direct->second) break;
    limits.split = at->first;
  }
  return limits;
}

/// REQUIRES: sorted by PEs. The largest number of PEs of a kind is for all above.
inline std::string make_collective_table(const std::vector<MeasuredCollective>& all, const std::string& comment) {
  std::string text = "# " + comment + "\n" + shmem::kCollectiveFormat + "\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto same_kind = [&](const MeasuredCollective& other) {
      return other.collective == all[i].collective && other.crowded == all[i].crowded;
    };
    const bool last = std::none_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), same_kind);
    text += to_string(shmem::CollectiveRow{all[i].collective, all[i].crowded, last ? shmem::kAnyPes : all[i].pes,
                                           best_limits(all[i])}) +
            "\n";
  }
  return text;
}

}  // namespace bench
