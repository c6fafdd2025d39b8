// SPDX-License-Identifier: Apache-2.0
// A picture of figures over sizes, as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bench {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;  // above 0
  bool dashed = false;
};

/// Both axes are logarithmic. REQUIRES: there is a point.
std::string log_log_chart(const std::string& title, const std::string& x_name, const std::string& y_name,
                          const std::vector<Line>& lines);

}  // namespace bench
