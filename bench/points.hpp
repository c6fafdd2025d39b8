// SPDX-License-Identifier: Apache-2.0
// What is measured: a figure, something simpler right beside it, and the speed of the machine before and after.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace bench {

/// One repeat, in nanoseconds. A virtual machine moves between cores that are near to and far from each other, which
/// changes every figure by up to ten times: points are compared only within themselves, and one is worth nothing if
/// the machine changed under it.
struct Point {
  double raw_before = 0;
  double figure = 0;
  double base = 0;  // the simpler thing, if any; the raw round trip itself where that is it
  double raw_after = 0;

  [[nodiscard]] double raw() const { return (raw_before + raw_after) / 2; }
  [[nodiscard]] double ratio() const { return figure / base; }
  /// The raw round trip was the same before and after, within a fifth.
  [[nodiscard]] bool steady() const;
};

/// A named figure with its repeats.
struct Series {
  std::string name;
  std::vector<Point> points;

  [[nodiscard]] std::vector<Point> steady() const;
  /// The steady points; all of them if those are fewer than three.
  [[nodiscard]] std::vector<Point> usable() const;
};

/// Least and middle of a quantity. REQUIRES: points are not empty.
struct Spread {
  double least = 0;
  double middle = 0;
};
Spread spread_of(const std::vector<Point>& points, const std::function<double(const Point&)>& quantity);

/// As text, one line a point, for another process to read back. read_series throws std::runtime_error on what
/// write_series has not written; lines that do not begin with kPointMark are none of its business.
inline constexpr const char* kPointMark = "bench-point";
void write_series(std::ostream& out, const Series& series);
std::vector<Series> read_series(const std::string& text);

}  // namespace bench
