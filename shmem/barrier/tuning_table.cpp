// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/tuning_table.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <limits>
#include <sstream>
#include <system_error>

namespace shmem {
namespace {

constexpr int kAnySize = std::numeric_limits<int>::max();

// As measured: docs/barriers.md. One word that all look at moves least between few processors, and where PEs take turns
// on them each needs one; with many processors the rounds of a dissemination overlap.
constexpr const char* kBuiltIn = R"(libshmem-barrier-tuning 1
alone    4  central_counter
alone    8  npu_v3
alone    *  dissemination
crowded  *  central_counter
)";

std::optional<int> number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most;
  return good ? std::optional(value) : std::nullopt;
}

/// "" or what is wrong.
std::string read_parameter(const std::string& word, TuningRow& row) {
  const auto equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (name == "radix") {
    row.radix = number(value, 2, kMostRadix);
    return row.radix ? "" : "\"" + word + "\" is not radix=2 to radix=8";
  }
  if (name == "group") {
    row.group = number(value, 0, kAnySize);
    return row.group ? "" : "\"" + word + "\" is not group=N with N from 0";
  }
  return "\"" + word + "\" is neither radix=N nor group=N";
}

/// "" or what is wrong.
std::string read_row(const std::string& text, TuningRow& row) {
  std::istringstream words(text);
  std::string load;
  std::string pes;
  std::string algorithm;
  words >> load >> pes >> algorithm;
  if (load != "alone" && load != "crowded") {
    return "\"" + load + "\" is neither alone nor crowded";
  }
  row.crowded = load == "crowded";
  const auto most = pes == "*" ? std::optional(kAnySize) : number(pes, 1, kAnySize);
  if (!most) {
    return "\"" + pes + "\" is no number of PEs, from 1, or *";
  }
  row.most_pes = *most;
  const auto found = find_algorithm(algorithm);
  if (!found) {
    return "\"" + algorithm + "\" is none of the algorithms that shmem_info lists";
  }
  row.algorithm = *found;
  for (std::string word; words >> word;) {
    if (std::string wrong = read_parameter(word, row); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

std::string without_comment(const std::string& line) {
  std::string text = line.substr(0, line.find('#'));
  text.erase(text.find_last_not_of(" \t\r") + 1);
  return text;
}

bool serves_all(const std::vector<TuningRow>& rows, bool crowded) {
  return std::any_of(rows.begin(), rows.end(),
                     [crowded](const TuningRow& row) { return row.crowded == crowded && row.most_pes == kAnySize; });
}

}  // namespace

Result<TuningTable> TuningTable::parse(const std::string& text, std::string name) {
  TuningTable table;
  table.name_ = std::move(name);
  const auto wrong = [&table](int line, const std::string& what) {
    return fail(std::errc::invalid_argument, "shmem: " + table.name_ + ", line " + std::to_string(line) + ": " + what);
  };
  std::istringstream lines(text);
  bool begun = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string content = without_comment(line);
    if (content.empty()) continue;
    if (!begun && content != kTuningFormat) {
      return wrong(number, std::string("a table of barriers begins with \"") + kTuningFormat + "\"");
    }
    if (!std::exchange(begun, true)) continue;
    TuningRow row{.line = number};
    if (const std::string what = read_row(content, row); !what.empty()) {
      return wrong(number, what);
    }
    table.rows_.push_back(row);
  }
  for (const bool crowded : {false, true}) {
    if (!serves_all(table.rows_, crowded)) {
      return wrong(number + 1, std::string("here the file ends without a line \"") + (crowded ? "crowded" : "alone") +
                                   " * ALGORITHM\", for teams of any size");
    }
  }
  return table;
}

Result<TuningTable> TuningTable::read(const std::string& file) {
  std::ifstream in(file);
  if (!in) {
    return fail(std::errc{errno}, "shmem: cannot read the table of barriers " + file + ": " +
                                      std::generic_category().message(errno) + " (SHMEM_BARRIER_TUNING)");
  }
  return parse({std::istreambuf_iterator<char>(in), {}}, file);
}

TuningTable TuningTable::built_in() {
  return parse(kBuiltIn, "the built-in table").value();
}

Result<TuningTable> TuningTable::in_force(const std::string& file) {
  return file.empty() ? built_in() : read(file);
}

const TuningRow& TuningTable::choose(int pes, bool crowded) const {
  return *std::find_if(rows_.begin(), rows_.end(),
                       [pes, crowded](const TuningRow& row) { return row.crowded == crowded && pes <= row.most_pes; });
}

std::string to_string(const TuningRow& row) {
  std::ostringstream text;
  text << std::left << std::setw(9) << (row.crowded ? "crowded" : "alone") << std::setw(5)
       << (row.most_pes == kAnySize ? "*" : std::to_string(row.most_pes)) << name_of(row.algorithm);
  if (row.radix) text << " radix=" << *row.radix;
  if (row.group) text << " group=" << *row.group;
  return text.str();
}

}  // namespace shmem
