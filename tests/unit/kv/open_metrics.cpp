// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kv/open_metrics.hpp"

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "tests/support/text.hpp"

namespace exchange_test {

OpenMetrics::OpenMetrics(const std::string& page, const std::string& label)
    : sample_(R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)\{)re" + label + R"re(="[^"\\]*",?((?:[a-z]+="[^"\\]*",?)*)\} (\S+))re") {
  if (page.empty() || page.back() != '\n') {
    problem_ = "the last line has no end";
    return;
  }
  std::istringstream lines(page);
  for (std::string line; problem_.empty() && std::getline(lines, line);) {
    if (ended_) {
      problem_ = "a line after # EOF";
    } else if (line == "# EOF") {
      ended_ = true;
    } else if (line.starts_with("#")) {
      read_metadata(line);
    } else {
      read_sample(line);
    }
    if (!problem_.empty()) {
      problem_ += ": " + line;
    }
  }
  if (problem_.empty() && !ended_) {
    problem_ = "# EOF is missing";
  }
  if (problem_.empty()) {
    check_histograms();
  }
}

double OpenMetrics::value(const std::string& sample) const {
  const auto found = samples_.find(sample);
  return found != samples_.end() ? found->second : -1;
}

void OpenMetrics::read_metadata(const std::string& line) {
  const auto parts = test_support::match_of(line, "# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)");
  if (parts.empty()) {
    problem_ = "no metadata";
    return;
  }
  const std::string& what = parts[1];
  const std::string& name = parts[2];
  const std::string& text = parts[3];
  if (name != family_) {
    if (what != "TYPE") {
      problem_ = "a family that does not begin with its type";
    } else if (types_.contains(name)) {
      problem_ = "the lines of a family are not together";
    }
    family_ = name;
    sampled_ = false;
  } else if (what == "TYPE" || sampled_) {
    problem_ = "metadata twice, or after samples";
  }
  if (what == "TYPE") {
    static const std::set<std::string> kTypes{"gauge", "counter", "histogram", "info"};
    problem_ = kTypes.contains(text) ? problem_ : "an unknown type";
    types_[name] = text;
  } else if (what == "UNIT" && !name.ends_with("_" + text)) {
    problem_ = "the name does not end with the unit";
  }
}

void OpenMetrics::read_sample(const std::string& line) {
  const auto parts = test_support::match_of(line, sample_);
  if (parts.empty()) {
    problem_ = "no sample with the first label";
    return;
  }
  const std::string& name = parts[1];
  const std::string& labels = parts[2];
  char* end = nullptr;
  const std::string& number = parts[3];
  const double value = std::strtod(number.c_str(), &end);
  sampled_ = true;
  if (!name.starts_with(family_) || !suffixes().contains(name.substr(family_.size()))) {
    problem_ = "a sample that is not of the type " + types_[family_];
  } else if (*end != '\0' || !std::isfinite(value) || value < 0) {
    problem_ = "no value";
  } else if (!samples_.emplace(labels.empty() ? name : name + "{" + labels + "}", value).second) {
    problem_ = "a sample twice";
  } else if (name.ends_with("_bucket")) {
    const auto bound = test_support::match_of(labels, "le=\"([^\"]+)\"");
    problem_ = bound.empty() ? "a bucket without a bound" : add_bucket(bound[1], value);
  } else if (types_[family_] == "info" && value != 1) {
    problem_ = "an info that is not 1";
  }
}

std::set<std::string> OpenMetrics::suffixes() const {
  const auto type = types_.find(family_);
  if (type == types_.end()) {
    return {};
  }
  return type->second == "gauge"     ? std::set<std::string>{""}
         : type->second == "counter" ? std::set<std::string>{"_total"}
         : type->second == "info"    ? std::set<std::string>{"_info"}
                                     : std::set<std::string>{"_bucket", "_count", "_sum"};
}

std::string OpenMetrics::add_bucket(const std::string& bound, double count) {
  auto& [last_bound, last_count] = buckets_.try_emplace(family_, 0.0, 0.0).first->second;
  const double number = bound == "+Inf" ? INFINITY : std::strtod(bound.c_str(), nullptr);
  if (!(number > last_bound) || count < last_count) {
    return "buckets that do not grow";
  }
  last_bound = number;
  last_count = count;
  return "";
}

void OpenMetrics::check_histograms() {
  for (const auto& [family, type] : types_) {
    if (type != "histogram") {
      continue;
    }
    const auto last = buckets_.find(family);
    if (last == buckets_.end() || last->second.first != INFINITY || last->second.second != value(family + "_count") ||
        value(family + "_sum") < 0) {
      problem_ = family + ": the last bucket is not +Inf, or not the count, or there is no sum";
    }
  }
}

}  // namespace exchange_test
