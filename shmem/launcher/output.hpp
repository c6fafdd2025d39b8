// SPDX-License-Identifier: Apache-2.0
// The output of PEs, on its way to oshrun's standard output and standard error.
#pragma once

#include <poll.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "shmem/launcher/recent_lines.hpp"
#include "shmem/launcher/streams.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// One stream of all PEs: a pipe from each, and the sink for their lines. While the sink is full nothing is read, so
/// that PEs that print wait as they would at a slow terminal. Used by one thread.
class OutputStream {
 public:
  using Clock = std::chrono::steady_clock;
  /// Sees the bytes of a PE before anybody else; returns what is to be passed on.
  using Filter = std::function<std::string(int pe, std::string_view bytes)>;

  /// `target` is a descriptor that outlives the object.
  static Result<std::unique_ptr<OutputStream>> open(int target, Lines::Style style, int pes);
  void filter(Filter filter) { filter_ = std::move(filter); }
  /// Adds all output to `recent`, which outlives this.
  void remember(RecentLines& recent) { recent_ = &recent; }

  /// The descriptor that PE `pe` writes to; close it here once the PE has it.
  Result<base::UniqueFd> connect(int pe);

  /// The descriptors to poll; then call move().
  [[nodiscard]] pollfd wanted() const;
  /// Reads available output, once from each PE, and writes as much as possible. False if there was none.
  bool move();
  /// On a terminal: shows lines that have been unfinished for a while, for example questions.
  void show_waiting(Clock::time_point now);
  /// Passes on the unfinished lines.
  void release_all();
  void put_own(std::string_view line);

  [[nodiscard]] bool is_pending() const { return sink_.is_pending(); }
  [[nodiscard]] bool is_on_terminal() const { return on_terminal_; }

 private:
  OutputStream(base::UniqueFd readable, int target, Lines::Style style, int pes);

  bool read_from(int pe);
  void give_up();

  base::UniqueFd readable_;  // epoll: the pipes with output
  Sink sink_;
  Lines lines_;
  bool on_terminal_;
  std::vector<base::UniqueFd> pipes_;  // by PE
  std::optional<Clock::time_point> waiting_since_;
  std::vector<char> buffer_;
  std::string out_;
  Filter filter_;
  RecentLines* recent_ = nullptr;
};

/// Both streams. If both go to the same place one pipe serves both, so that a PE's own order is kept.
class Output {
 public:
  /// Descriptors for one PE; none: oshrun's.
  struct Ends {
    base::UniqueFd output;
    base::UniqueFd error;
  };

  /// Nothing passes through oshrun: PEs write to its output and error themselves.
  Output() = default;
  /// Raises the limit on open files for the pipes of `pes` PEs.
  /// `first`: see Lines::Style.
  static Result<Output> open(bool tags, int pes, int first = 0);
  /// For a job on several nodes: each of the `nodes` takes the place of a PE. All output passes through oshrun.
  static Result<Output> open_for_nodes(int nodes);
  /// REQUIRES: open_for_nodes() made this.
  void filter_output(OutputStream::Filter filter) { output_->filter(std::move(filter)); }

  /// REQUIRES: called once for each PE.
  Result<Ends> connect(int pe);
  [[nodiscard]] std::array<pollfd, 2> wanted() const;
  /// Moves available output without waiting. False if there was none.
  bool move();
  /// Prints `text` on standard error as a line of its own, after the PEs' output so far.
  void say(const std::string& text);
  /// After the last PE: passes on unfinished lines. Then call move() until is_pending() is false.
  void release_all();
  [[nodiscard]] bool is_pending() const;
  /// True if standard output passes through oshrun to a terminal.
  [[nodiscard]] bool is_for_terminal() const;
  /// The same for standard error.
  [[nodiscard]] bool is_error_for_terminal() const;
  /// The limit on open files that PEs should have, if it differs from oshrun's.
  [[nodiscard]] const std::optional<rlimit>& open_files_before() const { return open_files_before_; }
  /// See RecentLines.
  [[nodiscard]] std::vector<std::string> out_of_sight(int pe) const {
    return recent_ ? recent_->out_of_sight(pe) : std::vector<std::string>();
  }

 private:
  /// `to_null`: also what goes to /dev/null passes through oshrun.
  static Result<Output> open_streams(Lines::Style style, int pes, bool to_null);

  std::unique_ptr<OutputStream> output_;
  std::unique_ptr<OutputStream> error_;
  bool is_one_ = false;  // output_ is both
  std::optional<rlimit> open_files_before_;
  std::unique_ptr<RecentLines> recent_;
};

}  // namespace shmem::launcher
