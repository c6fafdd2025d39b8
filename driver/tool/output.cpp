// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tool {

namespace {

/// Three digits, as many as a person compares.
std::string three_digits(double value) {
  std::array<char, 32> text{};
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

}  // namespace

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_json(const Json& json) {
  print_text(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_json_line(const Json& json) {
  print_text(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string duration(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return std::to_string(ns) + " ns";
  if (ns < 1'000'000) return three_digits(value / 1e3) + " us";
  if (ns < 1'000'000'000) return three_digits(value / 1e6) + " ms";
  return three_digits(value / 1e9) + " s";
}

std::string size(std::uint64_t bytes) {
  constexpr std::uint64_t kKi = 1024;
  for (const auto& [unit, name] : {std::pair{kKi * kKi * kKi, "GiB"}, {kKi * kKi, "MiB"}, {kKi, "KiB"}}) {
    if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + " " + name;
  }
  return std::to_string(bytes) + " bytes";
}

std::string pci_id(unsigned vendor, unsigned device) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04x:%04x", vendor, device);
  return text.data();
}

std::string count(std::uint64_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

std::string join(const std::vector<std::string>& parts, const std::string& separator) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

}  // namespace tool
