// SPDX-License-Identifier: Apache-2.0
// Reads a page of OpenMetrics text, and says which rule of the format it breaks.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace exchange_test {

class OpenMetrics {
 public:
  /// problem() is empty if the page is valid. `label`: the first of all samples.
  explicit OpenMetrics(const std::string& page, const std::string& label = "exchange");

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] bool has(const std::string& family) const { return types_.contains(family); }
  [[nodiscard]] const std::string& type(const std::string& family) const { return types_.at(family); }
  /// `sample` as it stands in the page, except its first label. -1: there is none.
  [[nodiscard]] double value(const std::string& sample) const;

 private:
  void read_metadata(const std::string& line);
  void read_sample(const std::string& line);
  [[nodiscard]] std::set<std::string> suffixes() const;
  std::string add_bucket(const std::string& bound, double count);
  void check_histograms();

  const std::string sample_;  // the pattern of a line
  std::string problem_;
  bool ended_ = false;
  std::string family_;
  bool sampled_ = false;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> samples_;
  std::map<std::string, std::pair<double, double>> buckets_;  // bound and count of a family's last one
};

}  // namespace exchange_test
