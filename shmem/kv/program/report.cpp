// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/report.hpp"

#include <algorithm>
#include <numeric>

#include "shmem/kv/program/texts.hpp"

namespace kv_program {
namespace {

constexpr double kWidth = 900;
constexpr double kLeft = 90;
constexpr double kRight = kWidth - 30;
constexpr const char* kBefore = "#9db4c0";
constexpr const char* kAfter = "#1b7f79";
constexpr const char* kInk = "#22313a";

std::string at(double value) {
  return number(value, 1);
}

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
        // What XML and its encoding do not allow.
        out += static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~' ? '?' : c;
    }
  }
  return out;
}

std::string text_at(double x, double y, const std::string& text, const std::string& more = "") {
  return "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\"" + more + ">" + escaped(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line x1=\"" + at(x1) + "\" y1=\"" + at(y1) + "\" x2=\"" + at(x2) + "\" y2=\"" + at(y2) + "\" " + style +
         "/>\n";
}

std::string box(double x, double y, double width, double height, const char* colour) {
  return "<rect x=\"" + at(x) + "\" y=\"" + at(y) + "\" width=\"" + at(width) + "\" height=\"" + at(height) +
         "\" fill=\"" + colour + "\"/>\n";
}

/// A part of the picture with values upwards from 0.
struct Plot {
  double top, bottom, most;

  [[nodiscard]] double y(double value) const { return bottom - (most > 0 ? value / most : 0) * (bottom - top); }
};

std::string axes(const Plot& plot, const std::string& title, const std::string& top_label) {
  return text_at(kLeft, plot.top - 14, title, " font-weight=\"bold\"") +
         line(kLeft, plot.bottom, kRight, plot.bottom, "stroke=\"#22313a\"") +
         line(kLeft, plot.top, kRight, plot.top, "stroke=\"#d5dde1\"") +
         text_at(kLeft - 8, plot.top + 4, top_label, " text-anchor=\"end\"") +
         text_at(kLeft - 8, plot.bottom + 4, "0", " text-anchor=\"end\"");
}

std::string legend(double y) {
  return box(kRight - 190, y - 10, 12, 12, kBefore) + text_at(kRight - 172, y, "before") +
         box(kRight - 100, y - 10, 12, 12, kAfter) + text_at(kRight - 82, y, "after");
}

/// Over all rounds a PE's load is as good as the mean, as requests are dealt in turn.
const RoundResult& least_even(const Results& results) {
  return *std::max_element(
      results.rounds.begin(), results.rounds.end(),
      [](const RoundResult& a, const RoundResult& b) { return imbalance(a.before) < imbalance(b.before); });
}

std::string load_bars(const Results& results, double top, double bottom) {
  const auto& round = least_even(results);
  const std::vector<double> before(round.before.begin(), round.before.end());
  const std::vector<double> after(round.after.begin(), round.after.end());
  const double most = std::max(*std::max_element(before.begin(), before.end()),  //
                               *std::max_element(after.begin(), after.end()));
  const double mean = std::accumulate(before.begin(), before.end(), 0.0) / static_cast<double>(before.size());
  const Plot plot{top, bottom, most};
  const auto index = &round - results.rounds.data();
  const std::string title = "Tokens of each PE in round " + std::to_string(index + 1) + ", the least even one";
  std::string svg = axes(plot, title, number(most, 0)) + legend(top - 14);
  const double each = (kRight - kLeft) / static_cast<double>(before.size());
  const std::size_t label_every = 1 + before.size() / 40;
  for (std::size_t pe = 0; pe < before.size(); ++pe) {
    const double x = kLeft + each * static_cast<double>(pe);
    svg += box(x + each * 0.12, plot.y(before[pe]), each * 0.38, bottom - plot.y(before[pe]), kBefore);
    svg += box(x + each * 0.50, plot.y(after[pe]), each * 0.38, bottom - plot.y(after[pe]), kAfter);
    if (pe % label_every == 0) {
      svg += text_at(x + each / 2, bottom + 18, std::to_string(pe), " text-anchor=\"middle\"");
    }
  }
  svg += line(kLeft, plot.y(mean), kRight, plot.y(mean), "stroke=\"#c8553d\" stroke-dasharray=\"6 4\"");
  return svg + text_at(kRight, plot.y(mean) - 5, "mean " + number(mean, 0), " text-anchor=\"end\" fill=\"#c8553d\"") +
         text_at((kLeft + kRight) / 2, bottom + 36, "PE", " text-anchor=\"middle\"");
}

std::string curve(const Plot& plot, const Results& results, Load RoundResult::*load, const char* colour) {
  std::string points;
  const auto last = static_cast<double>(std::max<std::size_t>(results.rounds.size() - 1, 1));
  for (std::size_t i = 0; i < results.rounds.size(); ++i) {
    points += at(kLeft + (kRight - kLeft) * static_cast<double>(i) / last) + "," +
              at(plot.y(imbalance(results.rounds[i].*load))) + " ";
  }
  // One round alone is a line as well.
  if (results.rounds.size() == 1) {
    points += at(kRight) + "," + at(plot.y(imbalance(results.rounds.front().*load)));
  }
  return "<polyline points=\"" + points + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"2\"/>\n";
}

std::string imbalance_curves(const Results& results, double top, double bottom) {
  double most = 0;
  for (const RoundResult& round : results.rounds) {
    most = std::max({most, imbalance(round.before), imbalance(round.after)});
  }
  const Plot plot{top, bottom, most};
  return axes(plot, "Imbalance of each round: the fullest PE above the mean", percent(most)) + legend(top - 14) +
         curve(plot, results, &RoundResult::before, kBefore) + curve(plot, results, &RoundResult::after, kAfter) +
         text_at((kLeft + kRight) / 2, bottom + 20,
                 results.rounds.size() == 1 ? "round 1" : "round 1 to " + std::to_string(results.rounds.size()),
                 " text-anchor=\"middle\"");
}

std::string blocks_moved(const Results& results) {
  return std::to_string(results.blocks) + " blocks moved (" + number(static_cast<double>(results.bytes) / 1e9, 3) +
         " GB) at " + describe_speed(results);
}

std::string what_came_of_it(const Results& results) {
  const auto share = results.median(&RoundResult::barrier_share);
  return "imbalance " + percent(results.imbalance_before()) + " before, " + percent(results.imbalance_after()) +
         " after" + (share ? "; barriers " + percent(*share) + " of the time" : "");
}

/// Lines of at most so many characters, broken at spaces where there are some.
std::vector<std::string> wrapped(std::string text, std::size_t most) {
  std::vector<std::string> lines;
  while (text.size() > most) {
    const auto space = text.rfind(' ', most);
    const bool has_space = space != std::string::npos && space > 0;
    lines.push_back(text.substr(0, has_space ? space : most));
    text.erase(0, has_space ? space + 1 : most);
  }
  lines.push_back(text);
  return lines;
}

/// The head of the picture; `y` goes behind it.
std::string head(const Options& options, const Results& results, double& y) {
  constexpr std::size_t kTitleLength = 62;
  constexpr std::size_t kLineLength = 100;
  std::string svg;
  const std::string title = "kv_shuffle: " + (results.failure.empty() ? "PASS" : "FAIL: " + results.failure);
  for (const std::string& each : wrapped(title, kTitleLength)) {
    svg += text_at(kLeft, y, each, " font-size=\"18\" font-weight=\"bold\"");
    y += 24;
  }
  for (const std::string& text : {describe_setup(options, results), "trace: " + describe_trace(results),
                                  blocks_moved(results), what_came_of_it(results)}) {
    for (const std::string& each : wrapped(text, kLineLength)) {
      svg += text_at(kLeft, y, each);
      y += 20;
    }
  }
  return svg;
}

}  // namespace

std::string to_svg(const Options& options, const Results& results) {
  double y = 34;
  std::string content = head(options, results, y);
  if (!results.mean_load(&RoundResult::before).empty()) {
    content += load_bars(results, y + 40, y + 240) + imbalance_curves(results, y + 330, y + 470);
    y += 500;
  }
  const std::string size = "width=\"" + at(kWidth) + "\" height=\"" + at(y) + "\"";
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + at(kWidth) + " " + at(y) + "\" " + size +
         " font-family=\"sans-serif\" font-size=\"13\" fill=\"" + kInk + "\">\n<rect " + size +
         " fill=\"#ffffff\"/>\n" + content + "</svg>\n";
}

}  // namespace kv_program
