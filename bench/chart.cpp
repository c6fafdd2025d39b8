// SPDX-License-Identifier: Apache-2.0
#include "bench/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

namespace bench {
namespace {

constexpr double kWidth = 900;
constexpr double kHeight = 540;
constexpr double kLeft = 80;
constexpr double kRight = 270;  // for the names of the lines
constexpr double kTop = 50;
constexpr double kBottom = 60;
constexpr double kLineHeight = 20;

constexpr std::array kColours{"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2",
                              "#7f7f7f", "#bcbd22", "#17becf", "#393b79", "#ad494a", "#637939"};

/// From values to places, logarithmically.
struct Axis {
  double least = std::numeric_limits<double>::max();
  double most = 0;
  double from = 0;
  double to = 0;

  void include(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  [[nodiscard]] double place(double value) const {
    return from + (to - from) * std::log(value / least) / std::log(most / least);
  }
};

class Chart {
 public:
  explicit Chart(const std::vector<Line>& lines) : lines_(lines) {
    for (const Line& line : lines) {
      for (const auto& [x, y] : line.points) {
        x_.include(x);
        y_.include(y);
        sizes_.insert(x);
      }
    }
    // Whole decades, so that the axis has labels.
    y_.least = std::pow(10, std::floor(std::log10(y_.least)));
    y_.most = std::pow(10, std::ceil(std::log10(y_.most)));
  }

  std::string text(const std::string& title, const std::string& x_name, const std::string& y_name) {
    out_ << R"(<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" viewBox="0 0 )" << kWidth
         << ' ' << kHeight << "\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    label(kLeft, kTop / 2, "start", title);
    label((kLeft + kWidth - kRight) / 2, kHeight - kBottom / 4, "middle", x_name);
    label(kLeft, kTop - 8, "middle", y_name);
    draw_grid();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      draw(lines_[i], kColours[i % kColours.size()], kTop + kLineHeight * static_cast<double>(i));
    }
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  void label(double x, double y, const char* anchor, const std::string& text) {
    out_ << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\">" << text << "</text>\n";
  }

  void stroke(double x1, double y1, double x2, double y2, const char* colour, double width) {
    out_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" stroke=\"" << colour
         << "\" stroke-width=\"" << width << "\"/>\n";
  }

  void draw_grid() {
    for (const double size : sizes_) {
      stroke(x_.place(size), kTop, x_.place(size), kHeight - kBottom, "#dddddd", 1);
      label(x_.place(size), kHeight - kBottom + 18, "middle", as_text(size));
    }
    const int last = static_cast<int>(std::lround(std::log10(y_.most)));
    for (int power = static_cast<int>(std::lround(std::log10(y_.least))); power <= last; ++power) {
      const double decade = std::pow(10, power);
      stroke(kLeft, y_.place(decade), kWidth - kRight, y_.place(decade), "#dddddd", 1);
      label(kLeft - 8, y_.place(decade) + 4, "end", as_text(decade));
    }
  }

  void draw(const Line& line, const char* colour, double name_y) {
    const char* dashes = line.dashed ? " stroke-dasharray=\"6 4\"" : "";
    out_ << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2\"" << dashes << " points=\"";
    for (const auto& [x, y] : line.points) {
      out_ << x_.place(x) << ',' << y_.place(y) << ' ';
    }
    out_ << "\"/>\n";
    for (const auto& [x, y] : line.points) {
      out_ << "<circle cx=\"" << x_.place(x) << "\" cy=\"" << y_.place(y) << "\" r=\"3\" fill=\"" << colour << "\"/>\n";
    }
    stroke(kWidth - kRight + 20, name_y - 4, kWidth - kRight + 45, name_y - 4, colour, 3);
    label(kWidth - kRight + 52, name_y, "start", line.name);
  }

  static std::string as_text(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
  }

  const std::vector<Line>& lines_;
  std::set<double> sizes_;
  Axis x_{.from = kLeft, .to = kWidth - kRight};
  Axis y_{.from = kHeight - kBottom, .to = kTop};
  std::ostringstream out_;
};

}  // namespace

std::string log_log_chart(const std::string& title, const std::string& x_name, const std::string& y_name,
                          const std::vector<Line>& lines) {
  return Chart(lines).text(title, x_name, y_name);
}

}  // namespace bench
