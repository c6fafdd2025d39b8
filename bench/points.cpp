// SPDX-License-Identifier: Apache-2.0
#include "bench/points.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ostream>
#include <sstream>
#include <stdexcept>

namespace bench {
namespace {

constexpr double kSteadyWithin = 0.2;
constexpr std::size_t kEnoughPoints = 3;

Series& series_named(std::vector<Series>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Series& series) { return series.name == name; });
  if (found != all.end()) {
    return *found;
  }
  all.push_back({name, {}});
  return all.back();
}

}  // namespace

bool Point::steady() const {
  return std::abs(raw_after - raw_before) <= kSteadyWithin * std::min(raw_before, raw_after);
}

std::vector<Point> Series::steady() const {
  std::vector<Point> found;
  std::copy_if(points.begin(), points.end(), std::back_inserter(found), [](const Point& p) { return p.steady(); });
  return found;
}

std::vector<Point> Series::usable() const {
  auto found = steady();
  return found.size() >= kEnoughPoints ? found : points;
}

Spread spread_of(const std::vector<Point>& points, const std::function<double(const Point&)>& quantity) {
  std::vector<double> values;
  std::transform(points.begin(), points.end(), std::back_inserter(values), quantity);
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2]};
}

void write_series(std::ostream& out, const Series& series) {
  for (const Point& point : series.points) {
    out << kPointMark << ' ' << point.raw_before << ' ' << point.figure << ' ' << point.base << ' ' << point.raw_after
        << ' ' << series.name << '\n';
  }
  out.flush();
}

std::vector<Series> read_series(const std::string& text) {
  std::vector<Series> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string mark;
    Point point;
    if (!(in >> mark) || mark != kPointMark) {
      continue;
    }
    std::string name;
    if (!(in >> point.raw_before >> point.figure >> point.base >> point.raw_after >> std::ws) ||
        !std::getline(in, name)) {
      throw std::runtime_error("not a measured point: " + line);
    }
    series_named(all, name).points.push_back(point);
  }
  return all;
}

}  // namespace bench
