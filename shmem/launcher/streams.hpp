// SPDX-License-Identifier: Apache-2.0
// oshrun's messages and the streams that pass through it: lines of PEs, their descriptors, and terminal input.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// "oshrun: TEXT" as one line on standard error, in one write, so that it does not mix with lines of PEs.
void say(const std::string& text);

/// "was killed by signal 9 (Killed)", "exited with status 1": a status of waitpid().
std::string exit_text(int wait_status);
/// The status in a shell's form: 128 + the number of the signal.
int exit_status(int wait_status);

/// Bytes of PEs in, bytes of one stream out. Does no input or output. Used by one thread.
class Lines {
 public:
  struct Style {
    bool tags = false;  // begin each line with [PE]
    /// For a terminal: no PE's text may follow another PE's unfinished line; a missing end of line is inserted. Without
    /// this, and without tags, bytes are passed on unchanged.
    bool on_terminal = false;
    int first = 0;  // what to add to a PE's number for its tag
  };
  /// Longer lines are passed on in pieces.
  static constexpr std::size_t kLongest = std::size_t{64} << 10;

  Lines(Style style, int pes) : style_(style), pes_(static_cast<std::size_t>(pes)) {}

  /// Takes `bytes` from PE `pe`: finished lines go to `out`, the rest waits.
  void add(int pe, std::string_view bytes, std::string& out);
  /// Passes the unfinished line of `pe` to `out`.
  void release(int pe, std::string& out);
  /// A whole line that is from oshrun.
  void add_own(std::string_view line, std::string& out);
  /// True if `pe` has an unfinished line.
  [[nodiscard]] bool is_waiting(int pe) const { return !pes_[static_cast<std::size_t>(pe)].waiting.empty(); }

 private:
  static constexpr int kNone = -1;

  struct Pe {
    std::string waiting;
    bool in_line = false;  // the beginning of its line has been passed on
  };

  void pass_on(int pe, std::string_view bytes, std::string& out);
  void end_open_line(std::string& out);

  Style style_;
  std::vector<Pe> pes_;
  int open_ = kNone;  // the PE whose unfinished line was passed on last
};

/// Writes to a descriptor without waiting for its reader; unwritten bytes are kept. The descriptor's flags are
/// unchanged because others, such as the shell, share it. Used by one thread.
class Sink {
 public:
  /// `fd` stays open while the object lives, which does not close it.
  explicit Sink(int fd);

  void put(std::string_view bytes);
  /// True while bytes are kept.
  [[nodiscard]] bool is_pending() const { return !pending_.empty(); }
  /// The descriptor to poll while bytes are kept; then call flush().
  [[nodiscard]] pollfd wanted() const { return {fd_, POLLOUT, 0}; }
  void flush();
  /// errno once writing is no longer possible, for example EPIPE; else 0. Then nothing is kept.
  [[nodiscard]] int error() const { return error_; }

 private:
  [[nodiscard]] ssize_t write(std::string_view bytes) const;

  base::UniqueFd own_;  // the same file, reopened so that writing does not wait; none if that failed
  int fd_;
  bool is_socket_;
  int error_ = 0;
  std::string pending_;
};

/// Copies standard input into a pipe without waiting for either: poll `wanted()`, then call move().
class TerminalInput {
 public:
  /// `input` is a terminal; it is read only while oshrun is in its foreground group.
  static Result<TerminalInput> open(int input);

  /// PE 0's standard input. Close it here once PE 0 has it.
  [[nodiscard]] base::UniqueFd& pipe_end() { return read_; }
  /// The descriptor to poll; fd -1 when there is nothing to do.
  [[nodiscard]] pollfd wanted() const;
  /// Moves available input. Closes the pipe at the end of the input, and when PE 0 has closed its end.
  void move();

 private:
  TerminalInput(int input, base::UniqueFd read, base::UniqueFd write)
      : input_(input), read_(std::move(read)), write_(std::move(write)) {}

  void fill();
  void drain();

  int input_;
  base::UniqueFd read_;
  base::UniqueFd write_;
  std::array<char, 4096> buffer_{};
  std::size_t begin_ = 0;  // buffer_[begin_, end_) is still to be written
  std::size_t end_ = 0;
};

}  // namespace shmem::launcher
