// SPDX-License-Identifier: Apache-2.0
#include "tools/chart/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>

#include "base/size_text.hpp"

namespace chart {
namespace {

constexpr double kWidth = 900;
constexpr double kLeft = 80;
constexpr double kRight = kWidth - 270;  // the legend is right of it
constexpr double kAbove = 50;            // in a plot, for its title
constexpr double kBelow = 60;            // for the labels and the name of the horizontal axis
constexpr double kLineHeight = 20;
constexpr double kBarShare = 0.8;  // of the distance from one x to the next
constexpr std::size_t kMostLabels = 32;
constexpr double kNameLeft = 8;  // of the vertical axis
/// For logarithmic axes with labels at 1, 2 and 5 times powers of ten.
constexpr double kMostRoundRange = 2e4;
constexpr const char* kDashes = " stroke-dasharray=\"6 4\"";

constexpr std::array kColours{"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2",
                              "#7f7f7f", "#bcbd22", "#17becf", "#393b79", "#ad494a", "#637939"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        // XML and its encoding do not allow every byte.
        out += static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~' ? '?' : c;
    }
  }
  return out;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const char* style = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, style,
                     escaped(text));
}

std::string stroke(double x1, double y1, double x2, double y2, const char* colour, double width) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", x1, y1, x2,
      y2, colour, width);
}

std::string box(double x, double y, double width, double height, const char* colour) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
                     height, colour);
}

/// From values to positions.
struct Range {
  const Axis& axis;
  double from, to;  // positions of the least and the greatest value
  double least = std::numeric_limits<double>::max();
  double most = std::numeric_limits<double>::lowest();

  void include(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  [[nodiscard]] double scaled(double value) const { return axis.logarithmic ? std::log(value) : value; }
  [[nodiscard]] double position(double value) const {
    const double length = scaled(most) - scaled(least);
    return length > 0 ? from + (to - from) * (scaled(value) - scaled(least)) / length : from;
  }
  [[nodiscard]] std::string label(double value) const {
    if (axis.bytes && value >= 1024) {
      return base::size_text(static_cast<std::size_t>(value));
    }
    return fmt::format("{:g}{}", value, axis.unit);
  }
};

/// The greatest 1, 2 or 5 times a power of ten that is not above the value, which is above 0.
double round_down(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  const double leading = value / power * 1.000001;
  return power * (leading < 2 ? 1 : leading < 5 ? 2 : 5);
}

/// The next of these numbers.
double next_round(double value) {
  const double power = std::pow(10, std::floor(std::log10(value * 1.000001)));
  const double leading = value / power;
  return power * (leading < 1.5 ? 2 : leading < 3 ? 5 : 10);
}

/// Four to ten steps of 1, 2 or 5 times a power of ten up to `most`.
double step_up_to(double most) {
  const double power = std::pow(10, std::floor(std::log10(most)));
  const double leading = most / power;
  return power * (leading < 2 ? 0.2 : leading < 5 ? 0.5 : 1);
}

class Drawing {
 public:
  Drawing(const Plot& plot, double top)
      : plot_(plot),
        top_(top + kAbove),
        bottom_(top + plot.height - kBelow),
        x_{.axis = plot.x, .from = kLeft, .to = kRight},
        y_{.axis = plot.y, .from = bottom_, .to = top_} {
    for (const Series& series : plot.series) {
      for (const auto& [x, y] : series.points) {
        const double margin = series.bars ? 0.5 : 0;
        x_.include(x - margin);
        x_.include(x + margin);
        y_.include(y);
        xs_.insert(x);
      }
      bar_series_ += series.bars ? 1 : 0;
    }
    if (!xs_.empty()) {
      choose_ends();
    }
  }

  [[nodiscard]] std::string svg() const {
    std::string out = text_at(kLeft, top_ - kAbove + 16, "start", plot_.title, " font-weight=\"bold\"") +
                      text_at((kLeft + kRight) / 2, bottom_ + 40, "middle", plot_.x.name) +
                      text_at(kNameLeft, top_ - 14, "start", plot_.y.name);
    if (xs_.empty()) {
      return out;
    }
    out += grid();
    std::size_t bar_index = 0;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      const Series& series = plot_.series[i];
      const char* colour = kColours[i % kColours.size()];
      out += series.bars ? bars(series, colour, bar_index++) : line(series, colour);
      const double y = top_ + kLineHeight * static_cast<double>(i);
      out += sample(series, y, colour) + text_at(kRight + 40, y + 2, "start", series.name);
    }
    return out;
  }

 private:
  /// Whole decades or whole steps, so that both ends of the vertical axis have labels.
  void choose_ends() {
    if (y_.axis.logarithmic) {
      decades_ = y_.most / y_.least > kMostRoundRange;
      if (decades_) {
        y_.least = std::pow(10, std::floor(std::log10(y_.least)));
        y_.most = std::pow(10, std::ceil(std::log10(y_.most)));
      } else {
        y_.least = round_down(y_.least);
        const double below = round_down(y_.most);
        y_.most = below * 1.000001 < y_.most ? next_round(below) : below;
      }
    } else {
      y_.least = 0;
      y_.most = y_.most > 0 ? y_.most : 1;
      const double step = step_up_to(y_.most);
      y_.most = step * std::ceil(y_.most / step);
    }
  }

  [[nodiscard]] std::string grid() const {
    std::string out;
    const std::size_t label_every = 1 + (xs_.size() - 1) / kMostLabels;
    std::size_t index = 0;
    for (const double x : xs_) {
      const bool whole = bar_series_ == 0 || x == std::floor(x);
      if (whole && index++ % label_every == 0) {
        out += stroke(x_.position(x), top_, x_.position(x), bottom_, "#dddddd", 1) +
               text_at(x_.position(x), bottom_ + 18, "middle", x_.label(x));
      }
    }
    const double step = y_.axis.logarithmic ? 0 : step_up_to(y_.most);
    double y = y_.least;
    while (y <= y_.most * 1.0001) {
      out += stroke(kLeft, y_.position(y), kRight, y_.position(y), "#dddddd", 1) +
             text_at(kLeft - 8, y_.position(y) + 4, "end", y_.label(y));
      y = step > 0 ? y + step : decades_ ? y * 10 : next_round(y);
    }
    return out;
  }

  /// What the series looks like, for the legend.
  [[nodiscard]] static std::string sample(const Series& series, double y, const char* colour) {
    if (series.bars) {
      return box(kRight + 20, y - 9, 12, 12, colour);
    }
    const std::string dot =
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", kRight + 24, y - 3, colour);
    if (series.points.size() < 2) {
      return dot;
    }
    return fmt::format("<path d=\"M{:.1f},{:.1f} h24\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", kRight + 12, y - 3,
                       colour, series.dashed ? kDashes : "") +
           dot;
  }

  [[nodiscard]] std::string line(const Series& series, const char* colour) const {
    std::string points;
    std::string circles;
    for (const auto& [x, y] : series.points) {
      points += fmt::format("{:.1f},{:.1f} ", x_.position(x), y_.position(y));
      circles += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x_.position(x),
                             y_.position(y), colour);
    }
    return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{} points=\"{}\"/>\n{}", colour,
                       series.dashed ? kDashes : "", points, circles);
  }

  [[nodiscard]] std::string bars(const Series& series, const char* colour, std::size_t index) const {
    const double width = (x_.position(1) - x_.position(0)) * kBarShare / static_cast<double>(bar_series_);
    const double shift = width * (static_cast<double>(index) - static_cast<double>(bar_series_) / 2);
    std::string out;
    for (const auto& [x, y] : series.points) {
      out += box(x_.position(x) + shift, y_.position(y), width, bottom_ - y_.position(y), colour);
    }
    return out;
  }

  const Plot& plot_;
  double top_;
  double bottom_;
  Range x_;
  Range y_;
  bool decades_ = false;  // the vertical axis has a label at each power of ten only
  std::set<double> xs_;
  std::size_t bar_series_ = 0;
};

/// Lines of up to `most` characters, broken at a space if there is one.
std::vector<std::string> wrapped(std::string text, std::size_t most) {
  std::vector<std::string> lines;
  while (text.size() > most) {
    const auto space = text.rfind(' ', most);
    const bool has_space = space != std::string::npos && space > 0;
    lines.push_back(text.substr(0, has_space ? space : most));
    text.erase(0, has_space ? space + 1 : most);
  }
  lines.push_back(std::move(text));
  return lines;
}

}  // namespace

std::string to_svg(const std::vector<Plot>& plots, const std::vector<std::string>& heading) {
  std::string content;
  double y = heading.empty() ? 0 : 34;
  for (std::size_t i = 0; i < heading.size(); ++i) {
    const bool first = i == 0;
    for (const std::string& line : wrapped(heading[i], first ? 66 : 110)) {
      content += text_at(kLeft, y, "start", line, first ? " font-size=\"18\" font-weight=\"bold\"" : "");
      y += first ? 24 : kLineHeight;
    }
  }
  for (const Plot& plot : plots) {
    content += Drawing(plot, y).svg();
    y += plot.height;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"13\" viewBox=\"0 0 {:g} "
      "{:g}\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
      kWidth, y, content);
}

}  // namespace chart
