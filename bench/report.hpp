// SPDX-License-Identifier: Apache-2.0
// What benchmarks and tuners write: tables, charts and files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/chart/chart.hpp"

namespace bench {

/// Prints rows of text in columns.
class Table {
 public:
  /// The width of each column, negative ones to the left, and bars between them: "-10 8 8 | 8".
  explicit Table(const std::string& layout);
  void print(const std::vector<std::string>& cells) const;

 private:
  std::vector<std::string> columns_;
};

/// "12.30"; without a value "-".
std::string number(std::optional<double> value, int digits);

/// A plot with two logarithmic axes.
chart::Plot logarithmic_plot(const std::string& title, const char* x_name, const char* y_name);

/// Adds a point, unless it has no value, to the line `name`, which its first point creates.
void add_point(chart::Plot& plot, const std::string& name, double x, std::optional<double> y, bool dashed = false);

/// Throws std::runtime_error.
void write_file(const std::string& file, const std::string& text);
/// Writes nothing if `file` is "".
void write_svg(const std::string& file, const std::vector<chart::Plot>& plots);

}  // namespace bench
