// SPDX-License-Identifier: Apache-2.0
// Makes the tables that SHMEM_BARRIER_TUNING and SHMEM_COLLECTIVE_TUNING name from measured barriers and collectives.
#pragma once

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "shmem/config/tuning.hpp"

namespace bench {
/// A choice for the barriers of `pes` PEs, as written in a table, and its time relative to the machine's part of it.
struct Candidate {
  std::string way;
  double time = 0;
};
struct Measured {
  int pes = 0;
  bool oversubscribed = false;
  std::vector<Candidate> candidates{};
};

/// Gains smaller than this may be noise, and do not justify another choice.
constexpr double kWorthwhile = 0.95;

/// The text of a table row after the number of PEs.
inline std::string way_of(const shmem::TuningRow& row) {
  std::istringstream words(to_string(row));
  std::string way;
  words >> way >> way;
  std::getline(words >> std::ws, way);
  return way;
}

/// REQUIRES: there is a candidate.
inline std::string best_way(const Measured& measured) {
  const auto faster = [](const Candidate& a, const Candidate& b) { return a.time < b.time; };
  const auto best = std::min_element(measured.candidates.begin(), measured.candidates.end(), faster);
  const auto built_in = shmem::TuningTable::built_in();
  const auto usual = way_of(built_in.choose(measured.pes, measured.oversubscribed));
  const auto known = std::find_if(measured.candidates.begin(), measured.candidates.end(),
                                  [&usual](const Candidate& candidate) { return candidate.way == usual; });
  const bool stay = known != measured.candidates.end() && best->time > kWorthwhile * known->time;
  return stay ? usual : best->way;
}

/// The lines of one kind: those of the measured sizes, in their order, the last of which also holds for larger sizes;
/// the built-in lines if none was measured.
inline std::string table_lines(const std::vector<Measured>& all, bool oversubscribed) {
  const char* load = oversubscribed ? "oversubscribed " : "alone ";
  std::vector<std::pair<int, std::string>> rows;
  for (const Measured& measured : all) {
    if (measured.oversubscribed != oversubscribed) {
      continue;
    }
    const std::string way = best_way(measured);
    if (!rows.empty() && rows.back().second == way) {
      rows.back().first = measured.pes;
    } else {
      rows.emplace_back(measured.pes, way);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += load + (i + 1 < rows.size() ? std::to_string(rows[i].first) : "*") + " " + rows[i].second + "\n";
  }
  if (rows.empty()) {
    const auto built_in = shmem::TuningTable::built_in();
    for (const auto& row : built_in.rows()) {
      if (!row.teams.nodes && row.teams.oversubscribed == oversubscribed) {
        text += to_string(row) + "\n";
      }
    }
  }
  return text;
}

/// REQUIRES: sorted by PEs.
inline std::string make_table(const std::vector<Measured>& all, const std::string& comment) {
  return "# " + comment + "\n" + shmem::kTuningFormat + "\n" + table_lines(all, false) + table_lines(all, true);
}

/// Times of one collective by bytes and algorithm, relative to a barrier.
struct MeasuredCollective {
  shmem::Collective collective{};
  int pes = 0;
  bool oversubscribed = false;
  std::map<std::uint64_t, double> eager{};
  std::map<std::uint64_t, double> direct{};
  std::map<std::uint64_t, double> scatter_allgather{};
};

/// Eager up to the largest size at which it is not slower than direct, like at all smaller sizes; scatter-allgather
/// from the size above which it is always faster, if there is one.
inline shmem::CollectiveLimits best_limits(const MeasuredCollective& measured) {
  shmem::CollectiveLimits limits;
  for (const auto& [bytes, time] : measured.eager) {
    const auto direct = measured.direct.find(bytes);
    if (bytes > shmem::eager_limit(measured.collective) || direct == measured.direct.end() || time > direct->second) {
      break;
    }
    limits.eager = bytes;
  }
  for (auto at = measured.scatter_allgather.rbegin(); at != measured.scatter_allgather.rend(); ++at) {
    const auto direct = measured.direct.find(at->first);
    if (direct == measured.direct.end() || at->second > kWorthwhile * direct->second) {
      break;
    }
    limits.scatter_allgather = at->first;
  }
  return limits;
}

/// REQUIRES: sorted by PEs. The entry of the largest number of PEs of a kind also holds for larger numbers.
inline std::string make_collective_table(const std::vector<MeasuredCollective>& all, const std::string& comment) {
  std::string text = "# " + comment + "\n" + shmem::kCollectiveFormat + "\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto same_kind = [&](const MeasuredCollective& other) {
      return other.collective == all[i].collective && other.oversubscribed == all[i].oversubscribed;
    };
    const bool last = std::none_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), same_kind);
    const shmem::RowTeams teams{.oversubscribed = all[i].oversubscribed,
                                .most_pes = last ? shmem::kAnyPes : all[i].pes};
    text += to_string(
                shmem::CollectiveRow{.collective = all[i].collective, .teams = teams, .limits = best_limits(all[i])}) +
            "\n";
  }
  return text;
}

}  // namespace bench
