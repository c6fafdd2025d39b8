// SPDX-License-Identifier: Apache-2.0
// The places in the text of an algorithm that call fence, dcci, dcci_all and sync, so that a test can leave out one.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incoherent {

/// A call in the text, by __builtin_FILE() and __builtin_LINE() as default arguments: what std::source_location gives,
/// which clang 14 does not have. Calls on one line are one.
struct Site {
  std::string_view operation;
  std::string_view file;
  int line = 0;

  bool operator==(const Site&) const = default;
  [[nodiscard]] std::string text() const {
    return std::string(operation) + " at " + std::string(file) + ":" + std::to_string(line);
  }
};

/// Which of them one run has come by, and the one that it leaves out.
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
