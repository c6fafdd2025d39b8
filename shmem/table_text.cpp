// SPDX-License-Identifier: Apache-2.0
#include "shmem/table_text.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

namespace shmem {
namespace {

std::string without_comment(const std::string& line) {
  std::string text = line.substr(0, line.find('#'));
  text.erase(text.find_last_not_of(" \t\r") + 1);
  return text;
}

}  // namespace

tl::unexpected<Error> wrong_line(const TableText& table, int line, const std::string& what) {
  return fail(std::errc::invalid_argument, "shmem: " + table.name + ", line " + std::to_string(line) + ": " + what);
}

Result<int> read_table(const TableText& table, const std::string& text,
                       const std::function<std::string(int line, const std::string& content)>& row) {
  std::istringstream lines(text);
  bool begun = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string content = without_comment(line);
    if (content.empty()) continue;
    if (!begun && content != table.format) {
      return wrong_line(table, number,
                        std::string("a table of ") + table.what + " begins with \"" + table.format + "\"");
    }
    if (!std::exchange(begun, true)) continue;
    if (const std::string what = row(number, content); !what.empty()) {
      return wrong_line(table, number, what);
    }
  }
  return number;
}

Result<std::string> read_table_file(const std::string& file, const char* what, const char* variable) {
  std::ifstream in(file);
  if (!in) {
    return fail(std::errc{errno}, std::string("shmem: cannot read the table of ") + what + " " + file + ": " +
                                      std::generic_category().message(errno) + " (" + variable + ")");
  }
  return std::string{std::istreambuf_iterator<char>(in), {}};
}

}  // namespace shmem
