// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include "shmem/config/tuning.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using shmem::CollectiveTable;
using shmem::TuningTable;

constexpr std::array<int, 6> kTeams{1, 2, 7, 64, 65'536, shmem::kAnyPes};

/// Writes the table as text.
template <typename Table>
std::string text_of(const Table& table, const char* format) {
  std::string text;
  text.append(format).append(1, '\n');
  for (const auto& row : table.rows()) {
    text += to_string(row) + "\n";
  }
  return text;
}

template <typename Table>
void check_reason(const shmem::Result<Table>& table) {
  check(table.error().text.find("table, line ") != std::string::npos, "a refusal names the line");
}

void run_barriers(const std::string& text) {
  const auto table = TuningTable::parse(text, "table");
  if (!table) {
    return check_reason(table);
  }
  const auto again = TuningTable::parse(text_of(*table, shmem::kTuningFormat), "again");
  check(again.has_value(), "a table that was written is read");
  for (const int pes : kTeams) {
    for (const bool oversubscribed : {false, true}) {
      const auto& row = table->choose(pes, oversubscribed);
      check(row.teams.include(pes, oversubscribed), "a row is for its teams");
      check(!row.radix || (*row.radix >= 2 && *row.radix <= 8), "the radix is in its range");
      check(to_string(again->choose(pes, oversubscribed)) == to_string(row), "a table means what it says");
    }
  }
}

void run_collectives(const std::string& text) {
  const auto table = CollectiveTable::parse(text, "table");
  if (!table) {
    return check_reason(table);
  }
  // A file without rows and one without a format line are allowed.
  const auto again = CollectiveTable::parse(text_of(*table, shmem::kCollectiveFormat), "again");
  check(again.has_value(), "a table that was written is read");
  for (const int pes : kTeams) {
    const auto choice = table->choose(pes, false);
    const auto same = again->choose(pes, false);
    for (std::size_t i = 0; i < shmem::kCollectives; ++i) {
      check(choice[i].eager <= shmem::eager_limit(shmem::Collective{static_cast<int>(i)}), "eager data fit");
      check(choice[i].eager == same[i].eager && choice[i].scatter_allgather == same[i].scatter_allgather,
            "a table means what it says");
    }
  }
}

}  // namespace

void run_tuning(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  run_barriers(text);
  run_collectives(text);
}

}  // namespace fuzz
