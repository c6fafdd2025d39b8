// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/terminal_input.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace shmem::launcher {

Result<TerminalInput> TerminalInput::open(int input) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  // Our end only: PE 0 gets an ordinary one.
  if (::fcntl(write.get(), F_SETFL, O_NONBLOCK) != 0) return fail_errno(errno, "cannot set up a pipe");
  return TerminalInput(input, std::move(read), std::move(write));
}

pollfd TerminalInput::wanted() const {
  if (!write_) return {-1, 0, 0};
  if (begin_ < end_) return {write_.get(), POLLOUT, 0};
  // Reading in the background would stop us. A terminal that is not ours to be stopped by has no foreground group.
  const pid_t foreground = ::tcgetpgrp(input_);
  if (foreground >= 0 && foreground != ::getpgrp()) return {-1, 0, 0};
  return {input_, POLLIN, 0};
}

void TerminalInput::move() {
  if (begin_ == end_) fill();
  if (begin_ < end_) drain();
}

void TerminalInput::fill() {
  const ssize_t got = ::read(input_, buffer_.data(), buffer_.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  begin_ = 0;
  end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got <= 0) write_.reset();
}

void TerminalInput::drain() {
  const ssize_t put = ::write(write_.get(), buffer_.data() + begin_, end_ - begin_);
  if (put > 0) begin_ += static_cast<std::size_t>(put);
  if (put < 0 && errno != EAGAIN && errno != EINTR) write_.reset();
  if (!write_) begin_ = end_;
}

}  // namespace shmem::launcher
