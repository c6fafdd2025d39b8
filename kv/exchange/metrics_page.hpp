// SPDX-License-Identifier: Apache-2.0
// A page of metrics as OpenMetrics text: https://prometheus.io/docs/specs/om/open_metrics_spec/
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "kv/exchange/metrics.hpp"

namespace shmem::exchange {

/// Families of metrics, one after the other. Their names begin with one prefix, and all samples have one label.
class MetricsPage {
 public:
  /// `label`: name="value", of characters that labels may have as they are.
  MetricsPage(std::string prefix, std::string label) : prefix_(std::move(prefix)), label_(std::move(label)) {}

  /// `labels`: name="value", with commas between.
  void info(std::string_view help, std::string_view labels) {
    family("", "info", "", help);
    write("{}_info{{{},{}}} 1\n", prefix_, label_, labels);
  }
  void gauge(std::string_view name, std::string_view unit, std::string_view help, std::uint64_t value) {
    family(name, "gauge", unit, help);
    write("{}_{}{{{}}} {}\n", prefix_, name, label_, value);
  }
  /// A gauge for each value of a further label. `values`: pairs of a name and a number.
  template <typename Values>
  void gauge_by(std::string_view label, std::string_view name, std::string_view unit, std::string_view help,
                const Values& values) {
    family(name, "gauge", unit, help);
    for (const auto& [which, value] : values) {
      write("{}_{}{{{},{}=\"{}\"}} {}\n", prefix_, name, label_, label, which, value);
    }
  }
  void counter(std::string_view name, std::string_view unit, std::string_view help, std::uint64_t value) {
    family(name, "counter", unit, help);
    write("{}_{}_total{{{}}} {}\n", prefix_, name, label_, value);
  }
  /// A counter for each cause. `causes`: pairs of a name and a number.
  template <typename Causes>
  void counter_by_cause(std::string_view name, std::string_view help, const Causes& causes) {
    family(name, "counter", "", help);
    for (const auto& [cause, value] : causes) {
      write("{}_{}_total{{{},cause=\"{}\"}} {}\n", prefix_, name, label_, cause, value);
    }
  }
  /// In seconds.
  void histogram(std::string_view name, std::string_view help, const Histogram& times) {
    family(name, "histogram", "seconds", help);
    std::uint64_t count = 0;
    for (std::size_t range = 0; range < Histogram::kRanges; ++range) {
      count += times.count(range);
      const bool last = range + 1 == Histogram::kRanges;
      write("{}_{}_bucket{{{},le=\"{}\"}} {}\n", prefix_, name, label_,
            last ? "+Inf" : fmt::format("{}", static_cast<double>(Histogram::end_of(range)) / 1e9), count);
    }
    write("{}_{}_count{{{}}} {}\n", prefix_, name, label_, count);
    write("{}_{}_sum{{{}}} {}\n", prefix_, name, label_, static_cast<double>(times.sum_ns()) / 1e9);
  }
  std::string end() {
    text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  template <typename... Values>
  void write(fmt::format_string<const Values&...> format, const Values&... values) {
    fmt::format_to(std::back_inserter(text_), format, values...);
  }
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
    const std::string full = fmt::format("{}{}{}", prefix_, name.empty() ? "" : "_", name);
    write("# TYPE {} {}\n", full, type);
    if (!unit.empty()) {
      write("# UNIT {} {}\n", full, unit);
    }
    write("# HELP {} {}.\n", full, help);
  }

  const std::string prefix_;
  const std::string label_;
  std::string text_;
};

}  // namespace shmem::exchange
