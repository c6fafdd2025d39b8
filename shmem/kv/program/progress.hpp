// SPDX-License-Identifier: Apache-2.0
// How far the run is, for somebody who watches.
#pragma once

#include <chrono>
#include <string>

namespace kv_program {

/// One line on standard error that is written again and again, and is gone in the end. On PE 0 and on a terminal only,
/// also when oshrun stands between; nothing at all elsewhere.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// `share` of the work is done: 0 to 1.
  void show(double share, const std::string& text);

 private:
  bool is_shown_;
  bool has_line_ = false;
  std::chrono::steady_clock::time_point last_{};
};

/// The line, without its end.
std::string progress_line(double share, const std::string& text);

}  // namespace kv_program
