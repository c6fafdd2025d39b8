// SPDX-License-Identifier: Apache-2.0
// Charts of lines and bars, as SVG 1.1 that needs no other file.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chart {

struct Axis {
  std::string name{};
  bool logarithmic = false;  // all values are above 0; otherwise the vertical axis begins at 0
  std::string unit{};        // appended to the numbers: " %"
  bool bytes = false;        // numbers are 1 KiB, 2 MiB
};

/// Bars of several series stand side by side at each x; the x values are then consecutive integers. Each series has its
/// own colour and an entry in the legend.
struct Series {
  std::string name{};
  std::vector<std::pair<double, double>> points{};
  bool bars = false;
  bool dashed = false;
};

struct Plot {
  std::string title{};
  Axis x{};
  Axis y{};
  std::vector<Series> series{};
  double height = 540;
};

/// The plots, one below the other. Lines of text stand above them, the first one in large letters; long ones are
/// wrapped. Characters other than printable ASCII become question marks.
std::string to_svg(const std::vector<Plot>& plots, const std::vector<std::string>& heading = {});

}  // namespace chart
