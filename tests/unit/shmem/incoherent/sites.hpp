// SPDX-License-Identifier: Apache-2.0
// The places in the source of an algorithm that call fence, dcci, dcci_all and sync, so that a test can skip one.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incoherent {

/// A call in the source, by __builtin_FILE() and __builtin_LINE() as default arguments: clang 14 has no
/// std::source_location. Calls on one line count as one.
struct Site {
  std::string_view operation;
  std::string_view file;
  int line = 0;

  bool operator==(const Site&) const = default;
  [[nodiscard]] std::string text() const {
    return std::string(operation) + " at " + std::string(file) + ":" + std::to_string(line);
  }
};

/// The places that a run has executed, and the one that it skips.
class Sites {
 public:
  Sites() = default;
  explicit Sites(const Site& left_out) : left_out_(left_out) {}

  /// True if the operation is to be done.
  bool pass(const Site& site) {
    if (std::ranges::find(seen_, site) == seen_.end()) {
      seen_.push_back(site);
    }
    return left_out_ != site;
  }
  [[nodiscard]] const std::vector<Site>& seen() const { return seen_; }

 private:
  std::optional<Site> left_out_;
  std::vector<Site> seen_;
};

}  // namespace incoherent
