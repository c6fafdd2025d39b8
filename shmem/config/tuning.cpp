// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/number.hpp"
#include "base/regular_file.hpp"

namespace shmem {
namespace {

// Measured: docs/barriers.md. A single word that all members poll moves the least data between few processors; members
// that share a processor each need a turn on it. With many processors the rounds of a dissemination overlap. Between
// nodes: docs/scaling.md. Up to 16 of them may well be one machine, where a message costs more than a round. With a
// power of two, pairs send as many messages as npu_v1, to fewer partners.
constexpr const char* kBuiltInBarriers = R"(libshmem-barrier-tuning 1
alone           4  central_counter
alone           8  npu_v3
alone           *  dissemination
oversubscribed  *  central_counter
nodes           3  npu_v1
nodes           4  recursive_doubling
nodes           7  npu_v1
nodes           8  recursive_doubling
nodes          15  npu_v1
nodes          16  recursive_doubling
nodes           *  npu_v2
)";

// Measured: docs/rma.md. What fits into a place is sent along: the source has most often just been written, and reading
// it then takes as long as reading the place, between two meetings.
constexpr const char* kBuiltInCollectives = R"(libshmem-collective-tuning 1
broadcast  alone           *  eager=1024
broadcast  oversubscribed  *  eager=1024
collect    alone           *  eager=1024
collect    oversubscribed  *  eager=1024
fcollect   alone           *  eager=1024
fcollect   oversubscribed  *  eager=1024
alltoall   alone           *  eager=1024
alltoall   oversubscribed  *  eager=8192
reduce     alone           *  eager=1024 scatter-allgather=2049
reduce     oversubscribed  *  eager=1024 scatter-allgather=2049
scan       alone           *  eager=1024
scan       oversubscribed  *  eager=1024
)";

std::string without_comment(const std::string& line) {
  std::string text = line.substr(0, line.find('#'));
  text.erase(text.find_last_not_of(" \t\r") + 1);
  return text;
}

Error wrong_line(const TableText& table, int line, const std::string& what) {
  return fail(std::errc::invalid_argument, fmt::format("shmem: {}, line {}: {}", table.name, line, what));
}

}  // namespace

Result<std::string> read_text(const std::string& file) {
  constexpr std::size_t kLargestTable = 1 << 20;  // far above a line for each number of PEs
  return base::read_text_file(file, kLargestTable);
}

namespace {

/// The contents of the file that `variable` names.
Result<std::string> read_table_file(const std::string& file, const char* what, const char* variable) {
  auto text = read_text(file);
  if (!text) {
    return fail(text.error().code,
                fmt::format("shmem: cannot read the table of {} {}: {} ({})", what, file, text.error().text, variable));
  }
  return text;
}

/// Reads the load and the number of PEs, or "nodes" and their number. Returns "" or the problem.
std::string read_teams(std::istream& words, RowTeams& teams, bool may_be_nodes) {
  std::string load;
  std::string pes;
  words >> load >> pes;
  teams.oversubscribed = load == "oversubscribed";
  teams.nodes = may_be_nodes && load == "nodes";
  if (load != "alone" && !teams.oversubscribed && !teams.nodes) {
    return fmt::format("\"{}\" is neither alone nor oversubscribed{}", load, may_be_nodes ? ", nor nodes" : "");
  }
  const auto most = pes == "*" ? kAnyPes : base::number<int>(pes, 1, kAnyPes);
  if (!most) {
    return fmt::format("\"{}\" is not a number of {}, from 1, or *", pes, teams.nodes ? "nodes" : "PEs");
  }
  teams.most_pes = *most;
  return "";
}

/// NAME=VALUE at the end of a row.
struct Parameter {
  std::string_view name;
  std::function<bool(std::string_view value)> set;  // false: the value is wrong
  std::string expected;                             // the allowed values, for messages
};

/// Reads the rest of the row. Returns "" or the problem.
std::string read_parameters(std::istream& words, const std::array<Parameter, 2>& known) {
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    const auto name = std::string_view(word).substr(0, equals);
    const auto value = equals == std::string::npos ? std::string_view() : std::string_view(word).substr(equals + 1);
    const auto* const found = std::ranges::find(known, name, &Parameter::name);
    if (found == known.end()) {
      return fmt::format("\"{}\" is neither {}=N nor {}=N", word, known[0].name, known[1].name);
    }
    if (!found->set(value)) {
      return fmt::format("\"{}\" is not {}={}", word, found->name, found->expected);
    }
  }
  return "";
}

template <typename T>
auto number_setter(std::optional<T>& target, T least, T most) {
  return [&target, least, most](std::string_view value) {
    target = base::number<T>(value, least, most);
    return target.has_value();
  };
}

/// Returns "" or the problem.
std::string read_row(const std::string& text, TuningRow& row) {
  std::istringstream words(text);
  words.exceptions(std::ios::badbit);  // no memory for a word throws, and does not end the text
  if (std::string wrong = read_teams(words, row.teams, true); !wrong.empty()) {
    return wrong;
  }
  std::string algorithm;
  words >> algorithm;
  const auto found = find_algorithm(algorithm);
  if (!found) {
    return fmt::format("\"{}\" is not an algorithm that shmem_info lists", algorithm);
  }
  row.algorithm = *found;
  return read_parameters(words, {Parameter{.name = "radix",
                                           .set = number_setter(row.radix, 2, kMostRadix),
                                           .expected = fmt::format("N with N from 2 to {}", kMostRadix)},
                                 Parameter{.name = "group",
                                           .set = number_setter(row.group, 1, std::numeric_limits<int>::max()),
                                           .expected = "N with N from 1"}});
}

/// Returns "" or the problem.
std::string read_row(const std::string& text, CollectiveRow& row) {
  std::istringstream words(text);
  words.exceptions(std::ios::badbit);
  std::string name;
  words >> name;
  const auto* const found = std::ranges::find(kCollectiveNames, name);
  if (found == kCollectiveNames.end()) {
    return fmt::format("\"{}\" is not broadcast, collect, fcollect, alltoall, reduce or scan", name);
  }
  row.collective = Collective{static_cast<int>(found - kCollectiveNames.begin())};
  if (std::string wrong = read_teams(words, row.teams, false); !wrong.empty()) {
    return wrong;
  }
  const auto set_eager = [&row](std::string_view value) {
    const auto most = base::number<std::uint64_t>(value, 0, eager_limit(row.collective));
    row.limits.eager = most.value_or(0);
    return most.has_value();
  };
  const auto set_scatter_allgather = [&row](std::string_view value) {
    const auto least = value == "never" ? kNever : base::number<std::uint64_t>(value, 0, kNever);
    row.limits.scatter_allgather = least.value_or(kNever);
    return least.has_value();
  };
  return read_parameters(
      words, {Parameter{.name = "eager",
                        .set = set_eager,
                        .expected = fmt::format("N with N from 0 to {}", eager_limit(row.collective))},
              Parameter{.name = "scatter-allgather", .set = set_scatter_allgather, .expected = "BYTES or never"}});
}

bool serves_all(const std::vector<TuningRow>& rows, bool oversubscribed) {
  return std::ranges::any_of(
      rows, [oversubscribed](const TuningRow& row) { return row.teams.include(kAnyPes, oversubscribed); });
}

const char* load_name(bool oversubscribed) {
  return oversubscribed ? "oversubscribed" : "alone";
}

std::string to_string(const RowTeams& teams) {
  return fmt::format("{:<15} {:<4}", teams.nodes ? "nodes" : load_name(teams.oversubscribed),
                     teams.most_pes == kAnyPes ? "*" : fmt::to_string(teams.most_pes));
}

}  // namespace

Result<int> read_table(const TableText& table, const std::string& text,
                       const std::function<std::string(int line, const std::string& content)>& row) {
  std::istringstream lines(text);
  lines.exceptions(std::ios::badbit);
  bool begun = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string content = without_comment(line);
    if (content.empty()) {
      continue;
    }
    if (!begun && content != table.format) {
      return wrong_line(table, number, fmt::format("a table of {} begins with \"{}\"", table.what, table.format));
    }
    if (!std::exchange(begun, true)) {
      continue;
    }
    if (const std::string what = row(number, content); !what.empty()) {
      return wrong_line(table, number, what);
    }
  }
  return number;
}

Result<TuningTable> TuningTable::parse(const std::string& text, std::string name) {
  TuningTable table;
  table.name_ = std::move(name);
  const TableText file{table.name_, "barriers", kTuningFormat};
  const auto lines = read_table(file, text, [&table](int line, const std::string& content) {
    return read_row(content, table.rows_.emplace_back(TuningRow{.line = line}));
  });
  if (!lines) {
    return lines.error();
  }
  for (const bool oversubscribed : {false, true}) {
    if (!serves_all(table.rows_, oversubscribed)) {
      return wrong_line(file, *lines + 1,
                        fmt::format("the file ends without a line \"{} * ALGORITHM\", for teams of any size",
                                    load_name(oversubscribed)));
    }
  }
  return table;
}

TuningTable TuningTable::built_in() {
  return parse(kBuiltInBarriers, "the built-in table").value();
}

Result<TuningTable> TuningTable::in_force(const std::string& file) {
  if (file.empty() || file == kBuiltIn) {
    return built_in();
  }
  const auto text = read_table_file(file, "barriers", "SHMEM_BARRIER_TUNING");
  return text ? parse(*text, file) : text.error();
}

const TuningRow& TuningTable::choose(int pes, bool oversubscribed) const {
  return *std::ranges::find_if(
      rows_, [pes, oversubscribed](const TuningRow& row) { return row.teams.include(pes, oversubscribed); });
}

TuningRow TuningTable::choose_between(int nodes) const {
  const auto fits = [nodes](const TuningRow& row) { return row.teams.include_nodes(nodes); };
  if (const auto found = std::ranges::find_if(rows_, fits); found != rows_.end()) {
    return *found;
  }
  const TuningTable other = built_in();
  TuningRow row = *std::ranges::find_if(other.rows_, fits);
  row.line = 0;
  return row;
}

std::string to_string(const TuningRow& row) {
  return fmt::format("{} {}{}{}", to_string(row.teams), name_of(row.algorithm),
                     row.radix ? fmt::format(" radix={}", *row.radix) : "",
                     row.group ? fmt::format(" group={}", *row.group) : "");
}

Result<CollectiveTable> CollectiveTable::parse(const std::string& text, std::string name) {
  CollectiveTable table;
  table.name_ = std::move(name);
  const auto lines = read_table(
      {table.name_, "collectives", kCollectiveFormat}, text,
      [&table](int /*line*/, const std::string& content) { return read_row(content, table.rows_.emplace_back()); });
  if (!lines) {
    return lines.error();
  }
  return table;
}

CollectiveTable CollectiveTable::built_in() {
  return parse(kBuiltInCollectives, "the built-in table").value();
}

Result<CollectiveTable> CollectiveTable::in_force(const std::string& file) {
  CollectiveTable defaults = built_in();
  if (file.empty()) {
    return defaults;
  }
  const auto text = read_table_file(file, "collectives", "SHMEM_COLLECTIVE_TUNING");
  auto table = text ? parse(*text, file) : text.error();
  if (table) {
    table->rows_.insert(table->rows_.end(), defaults.rows_.begin(), defaults.rows_.end());
  }
  return table;
}

CollectiveChoice CollectiveTable::choose(int pes, bool oversubscribed) const {
  CollectiveChoice choice{};
  for (std::size_t i = 0; i < kCollectives; ++i) {
    const auto found = std::ranges::find_if(rows_, [&](const CollectiveRow& row) {
      return static_cast<std::size_t>(row.collective) == i && row.teams.include(pes, oversubscribed);
    });
    if (found != rows_.end()) {
      choice[i] = found->limits;
    }
  }
  return choice;
}

std::string to_string(const CollectiveLimits& limits) {
  const bool never = limits.scatter_allgather == kNever;
  return fmt::format("eager={}{}", limits.eager,
                     never ? "" : fmt::format(" scatter-allgather={}", limits.scatter_allgather));
}

std::string to_string(const CollectiveRow& row) {
  return fmt::format("{:<10} {} {}", kCollectiveNames[static_cast<std::size_t>(row.collective)], to_string(row.teams),
                     to_string(row.limits));
}

}  // namespace shmem
