// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/tuning.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "shmem/table_text.hpp"

namespace shmem {
namespace {

// As measured: docs/rma.md.
constexpr const char* kBuiltIn = R"(libshmem-collective-tuning 1
broadcast  alone    *  carried=96
broadcast  crowded  *  carried=96
collect    alone    *  carried=96
collect    crowded  *  carried=96
fcollect   alone    *  carried=96
fcollect   crowded  *  carried=96
alltoall   alone    *  carried=96
alltoall   crowded  *  carried=96
reduce     alone    *  carried=96 split=2049
reduce     crowded  *  carried=96 split=2049
scan       alone    *  carried=96
scan       crowded  *  carried=96
)";

/// "" or what is wrong.
std::string read_limit(const std::string& word, CollectiveLimits& limits) {
  const auto equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (name == "carried") {
    const auto most = table_number<std::uint64_t>(value, 0, kMostCarried);
    limits.carried = most.value_or(0);
    return most ? "" : "\"" + word + "\" is not carried=0 to carried=" + std::to_string(kMostCarried);
  }
  if (name == "split") {
    const auto least = value == "never" ? kNeverSplit : table_number<std::uint64_t>(value, 0, kNeverSplit);
    limits.split = least.value_or(kNeverSplit);
    return least ? "" : "\"" + word + "\" is neither split=BYTES nor split=never";
  }
  return "\"" + word + "\" is neither carried=BYTES nor split=BYTES";
}

/// "" or what is wrong.
std::string read_row(const std::string& text, CollectiveRow& row) {
  std::istringstream words(text);
  std::string collective;
  std::string load;
  std::string pes;
  words >> collective >> load >> pes;
  const auto found = std::find(kCollectiveNames.begin(), kCollectiveNames.end(), collective);
  if (found == kCollectiveNames.end()) {
    return "\"" + collective + "\" is none of broadcast, collect, fcollect, alltoall, reduce and scan";
  }
  row.collective = Collective{static_cast<int>(found - kCollectiveNames.begin())};
  if (load != "alone" && load != "crowded") {
    return "\"" + load + "\" is neither alone nor crowded";
  }
  row.crowded = load == "crowded";
  const auto most = pes == "*" ? kAnyPes : table_number<int>(pes, 1, kAnyPes);
  if (!most) {
    return "\"" + pes + "\" is no number of PEs, from 1, or *";
  }
  row.most_pes = *most;
  for (std::string word; words >> word;) {
    if (std::string wrong = read_limit(word, row.limits); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

}  // namespace

Result<CollectiveTable> CollectiveTable::parse(const std::string& text, std::string name) {
  CollectiveTable table;
  table.name_ = std::move(name);
  const auto lines = read_table(
      {table.name_, "collectives", kCollectiveFormat}, text,
      [&table](int /*line*/, const std::string& content) { return read_row(content, table.rows_.emplace_back()); });
  if (!lines) {
    return tl::make_unexpected(lines.error());
  }
  return table;
}

CollectiveTable CollectiveTable::built_in() {
  return parse(kBuiltIn, "the built-in table").value();
}

Result<CollectiveTable> CollectiveTable::in_force(const std::string& file) {
  if (file.empty()) {
    return built_in();
  }
  auto text = read_table_file(file, "collectives", "SHMEM_COLLECTIVE_TUNING");
  auto table = text ? parse(*text, file) : tl::make_unexpected(text.error());
  if (table) {
    const auto usual = built_in();
    table->rows_.insert(table->rows_.end(), usual.rows_.begin(), usual.rows_.end());
  }
  return table;
}

CollectiveChoice CollectiveTable::choose(int pes, bool crowded) const {
  CollectiveChoice choice{};
  for (std::size_t i = 0; i < kCollectives; ++i) {
    const auto fits = [&](const CollectiveRow& row) {
      return static_cast<std::size_t>(row.collective) == i && row.crowded == crowded && pes <= row.most_pes;
    };
    const auto found = std::find_if(rows_.begin(), rows_.end(), fits);
    choice[i] = found != rows_.end() ? found->limits : CollectiveLimits{};
  }
  return choice;
}

std::string to_string(const CollectiveRow& row) {
  std::ostringstream text;
  text << std::left << std::setw(11) << kCollectiveNames[static_cast<std::size_t>(row.collective)] << std::setw(9)
       << (row.crowded ? "crowded" : "alone") << std::setw(5)
       << (row.most_pes == kAnyPes ? "*" : std::to_string(row.most_pes)) << "carried=" << row.limits.carried;
  if (row.limits.split != kNeverSplit) text << " split=" << row.limits.split;
  return text.str();
}

}  // namespace shmem
