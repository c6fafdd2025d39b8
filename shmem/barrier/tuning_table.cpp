// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/tuning_table.hpp"

#include <algorithm>
#include <iomanip>
#include <limits>
#include <sstream>

#include "shmem/table_text.hpp"

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

/// "" or what is wrong.
std::string read_parameter(const std::string& word, TuningRow& row) {
  const auto equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (name == "radix") {
    row.radix = table_number<int>(value, 2, kMostRadix);
    return row.radix ? "" : "\"" + word + "\" is not radix=2 to radix=8";
  }
  if (name == "group") {
    row.group = table_number<int>(value, 0, kAnySize);
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
  const auto most = pes == "*" ? std::optional(kAnySize) : table_number<int>(pes, 1, kAnySize);
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

bool serves_all(const std::vector<TuningRow>& rows, bool crowded) {
  return std::any_of(rows.begin(), rows.end(),
                     [crowded](const TuningRow& row) { return row.crowded == crowded && row.most_pes == kAnySize; });
}

}  // namespace

Result<TuningTable> TuningTable::parse(const std::string& text, std::string name) {
  TuningTable table;
  table.name_ = std::move(name);
  const TableText file{table.name_, "barriers", kTuningFormat};
  const auto lines = read_table(file, text, [&table](int line, const std::string& content) {
    TuningRow row{.line = line};
    std::string wrong = read_row(content, row);
    table.rows_.push_back(row);
    return wrong;
  });
  if (!lines) {
    return tl::make_unexpected(lines.error());
  }
  for (const bool crowded : {false, true}) {
    if (!serves_all(table.rows_, crowded)) {
      return wrong_line(file, *lines + 1,
                        std::string("here the file ends without a line \"") + (crowded ? "crowded" : "alone") +
                            " * ALGORITHM\", for teams of any size");
    }
  }
  return table;
}

Result<TuningTable> TuningTable::read(const std::string& file) {
  auto text = read_table_file(file, "barriers", "SHMEM_BARRIER_TUNING");
  return text ? parse(*text, file) : tl::make_unexpected(text.error());
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
