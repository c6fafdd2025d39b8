// SPDX-License-Identifier: Apache-2.0
// Hands what is typed at a terminal to PE 0. The PEs are a process group in the background, which may not read the
// terminal itself.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>

#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// Copies standard input into a pipe, and never waits for either: poll `wanted()`, then call move().
class TerminalInput {
 public:
  /// `input` is a terminal; it is read only while we are its foreground group.
  static Result<TerminalInput> open(int input);

  /// PE 0's standard input. To be closed here once PE 0 has it.
  [[nodiscard]] UniqueFd& pipe_end() { return read_; }
  /// What to poll for; fd -1 when there is nothing to do.
  [[nodiscard]] pollfd wanted() const;
  /// Moves what can be moved. Closes the pipe at the end of the input, and when PE 0 has closed its end.
  void move();

 private:
  TerminalInput(int input, UniqueFd read, UniqueFd write)
      : input_(input), read_(std::move(read)), write_(std::move(write)) {}

  void fill();
  void drain();

  int input_;
  UniqueFd read_;
  UniqueFd write_;
  std::array<char, 4096> buffer_{};
  std::size_t begin_ = 0;  // buffer_[begin_, end_) is still to be written
  std::size_t end_ = 0;
};

}  // namespace shmem::launcher
