// SPDX-License-Identifier: Apache-2.0
// What PEs print, on its way to oshrun's standard output and standard error.
#pragma once

#include <poll.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shmem/launcher/lines.hpp"
#include "shmem/launcher/sink.hpp"
#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// One stream of all PEs: a pipe from each, and the sink that their lines go to. While the sink has no room nothing is
/// read, so that PEs that print wait as they would at a slow terminal. Used by one thread.
class OutputStream {
 public:
  using Clock = std::chrono::steady_clock;

  /// `target` is a descriptor that outlives the object.
  static Result<std::unique_ptr<OutputStream>> open(int target, Lines::Style style, int pes);

  /// What PE `pe` writes to; to be closed here once the PE has it.
  Result<UniqueFd> connect(int pe);

  /// What to poll for; then call move().
  [[nodiscard]] pollfd wanted() const;
  /// Reads what is there, once from each PE, and writes what can be written. False if nothing was there.
  bool move();
  /// On a terminal: shows lines that have not been ended for a while, e.g. questions.
  void show_waiting(Clock::time_point now);
  /// Passes on what waits for the end of its line.
  void release_all();
  void put_own(std::string_view line);

  [[nodiscard]] bool is_pending() const { return sink_.is_pending(); }
  [[nodiscard]] bool is_on_terminal() const { return on_terminal_; }

 private:
  OutputStream(UniqueFd readable, int target, Lines::Style style, int pes);

  bool read_from(int pe);
  void give_up();

  UniqueFd readable_;  // the pipes that something is in
  Sink sink_;
  Lines lines_;
  bool on_terminal_;
  std::vector<UniqueFd> pipes_;  // by PE
  std::optional<Clock::time_point> waiting_since_;
  std::vector<char> buffer_;
  std::string out_;
};

/// Both streams. Where both go to the same place one pipe serves both, so that a PE's own order is kept.
class Output {
 public:
  /// Descriptors for one PE; none: ours.
  struct Ends {
    UniqueFd output;
    UniqueFd error;
  };

  /// Nothing passes through us: PEs write to our output and error themselves.
  Output() = default;
  /// Raises our limit on open files to what `pes` pipes need.
  static Result<Output> open(bool tags, int pes);

  /// REQUIRES: connected once for each PE.
  Result<Ends> connect(int pe);
  [[nodiscard]] std::array<pollfd, 2> wanted() const;
  /// Moves what can be moved, without waiting. False if nothing was there.
  bool move();
  /// Says it on standard error as a line of its own, after what PEs have printed so far.
  void say(const std::string& text);
  /// After the last PE: what waits for the end of its line. Then call move() until is_pending() is false.
  void release_all();
  [[nodiscard]] bool is_pending() const;
  /// True if standard output passes through us to a terminal.
  [[nodiscard]] bool is_for_terminal() const;
  /// True if standard error does.
  [[nodiscard]] bool is_error_for_terminal() const;
  /// The limit on open files that PEs should have, if ours is another.
  [[nodiscard]] const std::optional<rlimit>& open_files_before() const { return open_files_before_; }

 private:
  std::unique_ptr<OutputStream> output_;
  std::unique_ptr<OutputStream> error_;
  bool is_one_ = false;  // output_ is both
  std::optional<rlimit> open_files_before_;
};

}  // namespace shmem::launcher
