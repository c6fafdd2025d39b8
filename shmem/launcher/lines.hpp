// SPDX-License-Identifier: Apache-2.0
// Puts together what PEs print so that their lines stay whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shmem::launcher {

/// Bytes of PEs in, bytes of one stream out. Does no input or output. Used by one thread.
class Lines {
 public:
  struct Style {
    bool tags = false;  // begin each line with [PE]
    /// Somebody reads along, so that nobody's text may stand behind another's unfinished line; a missing end of line is
    /// put in. Without this, and without tags, bytes are passed on as they are.
    bool on_terminal = false;
  };
  /// A line that grows longer is passed on in pieces.
  static constexpr std::size_t kLongest = std::size_t{64} << 10;

  Lines(Style style, int pes) : style_(style), pes_(static_cast<std::size_t>(pes)) {}

  /// PE `pe` has printed `bytes`: the lines that they end go to `out`, the rest waits.
  void add(int pe, std::string_view bytes, std::string& out);
  /// The unfinished line of `pe` goes to `out` as it is.
  void release(int pe, std::string& out);
  /// A whole line that is no PE's.
  void add_own(std::string_view line, std::string& out);
  /// True if an unfinished line of `pe` waits.
  [[nodiscard]] bool is_waiting(int pe) const { return !pes_[static_cast<std::size_t>(pe)].waiting.empty(); }

 private:
  static constexpr int kNobody = -1;

  struct Pe {
    std::string waiting;
    bool in_line = false;  // the beginning of its line has been passed on
  };

  void pass_on(int pe, std::string_view bytes, std::string& out);
  void end_open_line(std::string& out);

  Style style_;
  std::vector<Pe> pes_;
  int open_ = kNobody;  // whose unfinished line is the last that was passed on
};

}  // namespace shmem::launcher
