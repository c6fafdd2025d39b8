// SPDX-License-Identifier: Apache-2.0
// From measured barriers to the table that SHMEM_BARRIER_TUNING names.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "shmem/barrier/tuning_table.hpp"

namespace bench {

/// A way to do the barriers of `pes` PEs as it is written in a table, and its time in parts of what the machine needs
/// for its own part of it.
struct Candidate {
  std::string way;
  double time = 0;
};
struct Measured {
  int pes = 0;
  bool crowded = false;
  std::vector<Candidate> candidates{};
};

/// Noise is less than this: what is no faster by it than the built-in choice is not worth another.
constexpr double kWorthwhile = 0.95;

/// What a table says behind the number of PEs.
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
  const auto usual = way_of(built_in.choose(measured.pes, measured.crowded));
  const auto known = std::find_if(measured.candidates.begin(), measured.candidates.end(),
                                  [&usual](const Candidate& candidate) { return candidate.way == usual; });
  const bool stay = known != measured.candidates.end() && best->time > kWorthwhile * known->time;
  return stay ? usual : best->way;
}

/// The lines of one kind: from the sizes that were measured, in their order, the largest of them for all above; the
/// built-in ones if none was.
inline std::string table_lines(const std::vector<Measured>& all, bool crowded) {
  const char* load = crowded ? "crowded " : "alone ";
  std::vector<std::pair<int, std::string>> rows;
  for (const Measured& measured : all) {
    if (measured.crowded != crowded) continue;
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
      if (row.crowded == crowded) text += to_string(row) + "\n";
    }
  }
  return text;
}

/// REQUIRES: sorted by PEs.
inline std::string make_table(const std::vector<Measured>& all, const std::string& comment) {
  return "# " + comment + "\n" + shmem::kTuningFormat + "\n" + table_lines(all, false) + table_lines(all, true);
}

}  // namespace bench
