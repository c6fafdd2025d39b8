// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace scale {

/// As printf does.
inline std::string decimal(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// With three digits that count.
inline std::string rounded(double value) {
  return decimal(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

/// A table of a page: the first column is of names or sizes.
class Markdown {
 public:
  explicit Markdown(const std::vector<std::string>& head) : text_(line(head)) {
    for (std::size_t i = 0; i < head.size(); ++i) text_ += i == 0 ? "|---" : "|---:";
    text_ += "|\n";
  }
  void add(const std::vector<std::string>& cells) { text_ += line(cells); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  static std::string line(const std::vector<std::string>& cells) {
    std::string text;
    for (const std::string& cell : cells) text += "| " + cell + " ";
    return text + "|\n";
  }

  std::string text_;
};

}  // namespace scale
