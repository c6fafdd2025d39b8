// SPDX-License-Identifier: Apache-2.0
// Tables that a tuning program writes and the library reads: a line for the format, then lines of words. "#" begins a
// comment; empty lines are skipped.
#pragma once

#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "shmem/result.hpp"

namespace shmem {

/// Which table, for messages.
struct TableText {
  std::string name;    // of the file
  const char* what;    // is tuned
  const char* format;  // the first line that is no comment
};

/// Calls row(line number, content) for each line behind the format; it returns "" or what is wrong. The number of the
/// last line.
Result<int> read_table(const TableText& table, const std::string& text,
                       const std::function<std::string(int line, const std::string& content)>& row);
/// "shmem: NAME, line 7: WHAT".
tl::unexpected<Error> wrong_line(const TableText& table, int line, const std::string& what);
/// The contents of the file that `variable` names.
Result<std::string> read_table_file(const std::string& file, const char* what, const char* variable);

/// Nothing unless all of it is a number from `least` to `most`.
template <typename T>
std::optional<T> table_number(std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most;
  return good ? std::optional<T>(value) : std::nullopt;
}

}  // namespace shmem
