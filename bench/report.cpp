// SPDX-License-Identifier: Apache-2.0
#include "bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace bench {

Table::Table(const std::string& layout) {
  std::istringstream in(layout);
  for (std::string column; in >> column;) {
    columns_.push_back(column);
  }
}

void Table::print(const std::vector<std::string>& cells) const {
  std::string line;
  auto cell = cells.begin();
  for (const std::string& column : columns_) {
    line += line.empty() ? "" : " ";
    if (column == "|") {
      line += column;
    } else if (cell != cells.end()) {
      const int width = std::stoi(column);
      line += width < 0 ? fmt::format("{:<{}}", *cell++, -width) : fmt::format("{:>{}}", *cell++, width);
    }
  }
  std::puts(line.c_str());
  std::fflush(stdout);
}

std::string number(std::optional<double> value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

chart::Plot logarithmic_plot(const std::string& title, const char* x_name, const char* y_name) {
  return {.title = title, .x = {.name = x_name, .logarithmic = true}, .y = {.name = y_name, .logarithmic = true}};
}

void add_point(chart::Plot& plot, const std::string& name, double x, std::optional<double> y, bool dashed) {
  if (!y) {
    return;
  }
  const auto found = std::ranges::find(plot.series, name, &chart::Series::name);
  chart::Series& line =
      found != plot.series.end() ? *found : plot.series.emplace_back(chart::Series{.name = name, .dashed = dashed});
  line.points.emplace_back(x, *y);
}

void write_file(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) {
    throw std::runtime_error("cannot write " + file);
  }
}

void write_svg(const std::string& file, const std::vector<chart::Plot>& plots) {
  if (!file.empty()) {
    write_file(file, chart::to_svg(plots));
  }
}

}  // namespace bench
