// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shmem::launcher {

void say(const std::string& text) {
  const std::string line = "oshrun: " + text + "\n";
  // A failure to write to standard error cannot be reported.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::string exit_text(int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    return fmt::format("exited with status {}", WEXITSTATUS(wait_status));
  }
  const int signal = WTERMSIG(wait_status);
  return fmt::format("was killed by signal {} ({}){}", signal, ::strsignal(signal),
                     WCOREDUMP(wait_status) ? ", core dumped" : "");
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void Lines::add(int pe, std::string_view bytes, std::string& out) {
  std::string& waiting = pes_[static_cast<std::size_t>(pe)].waiting;
  const auto last = bytes.rfind('\n');
  if (last != std::string_view::npos) {
    if (!waiting.empty()) {
      waiting.append(bytes.substr(0, last + 1));
      pass_on(pe, waiting, out);
      waiting.clear();
    } else {
      pass_on(pe, bytes.substr(0, last + 1), out);
    }
    bytes.remove_prefix(last + 1);
  }
  waiting.append(bytes);
  if (waiting.size() > kLongest) {
    release(pe, out);
  }
}

void Lines::release(int pe, std::string& out) {
  std::string waiting;
  waiting.swap(pes_[static_cast<std::size_t>(pe)].waiting);
  if (!waiting.empty()) {
    pass_on(pe, waiting, out);
  }
}

void Lines::add_own(std::string_view line, std::string& out) {
  end_open_line(out);
  out.append(line);
}

void Lines::end_open_line(std::string& out) {
  if (open_ == kNone) {
    return;
  }
  out.push_back('\n');
  pes_[static_cast<std::size_t>(open_)].in_line = false;
  open_ = kNone;
}

void Lines::pass_on(int pe, std::string_view bytes, std::string& out) {
  if (open_ != pe && (style_.tags || style_.on_terminal)) {
    end_open_line(out);
  }
  bool& in_line = pes_[static_cast<std::size_t>(pe)].in_line;
  if (style_.tags) {
    const std::string tag = fmt::format("[{}] ", pe + style_.first);
    for (std::string_view rest = bytes; !rest.empty();) {
      const auto end = rest.find('\n');
      const std::string_view line = rest.substr(0, end == std::string_view::npos ? end : end + 1);
      if (!in_line) {
        out.append(tag);
      }
      out.append(line);
      in_line = line.back() != '\n';
      rest.remove_prefix(line.size());
    }
  } else {
    out.append(bytes);
    in_line = bytes.back() != '\n';
  }
  open_ = in_line ? pe : kNone;
}

namespace {

/// Only pipes and terminals make their writers wait and can be reopened by the path of the descriptor.
base::UniqueFd reopen(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return base::UniqueFd();
  }
  if (!S_ISFIFO(status.st_mode) && ::isatty(fd) == 0) {
    return base::UniqueFd();
  }
  const std::string name = fmt::format("/proc/self/fd/{}", fd);
  return base::UniqueFd(::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool is_socket(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

Sink::Sink(int fd) : own_(reopen(fd)), fd_(own_ ? own_.get() : fd), is_socket_(is_socket(fd)) {}

void Sink::put(std::string_view bytes) {
  if (error_ != 0) {
    return;
  }
  pending_.append(bytes);
  flush();
}

ssize_t Sink::write(std::string_view bytes) const {
  if (is_socket_) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  return ::write(fd_, bytes.data(), bytes.size());
}

void Sink::flush() {
  std::size_t done = 0;
  while (done < pending_.size() && error_ == 0) {
    const ssize_t put = write(std::string_view(pending_).substr(done));
    if (put >= 0) {
      done += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      error_ = errno;
      done = pending_.size();
    }
  }
  pending_.erase(0, done);
}

Result<TerminalInput> TerminalInput::open(int input) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail_errno(errno, "cannot make a pipe");
  }
  base::UniqueFd read(ends[0]);
  base::UniqueFd write(ends[1]);
  // Only oshrun's end: PE 0 gets an ordinary one.
  if (::fcntl(write.get(), F_SETFL, O_NONBLOCK) != 0) {
    return fail_errno(errno, "cannot set up a pipe");
  }
  return TerminalInput(input, std::move(read), std::move(write));
}

pollfd TerminalInput::wanted() const {
  if (!write_) {
    return {-1, 0, 0};
  }
  if (begin_ < end_) {
    return {write_.get(), POLLOUT, 0};
  }
  // Reading in the background would stop oshrun. A terminal that does not control it has no foreground group.
  const pid_t foreground = ::tcgetpgrp(input_);
  if (foreground >= 0 && foreground != ::getpgrp()) {
    return {-1, 0, 0};
  }
  return {input_, POLLIN, 0};
}

void TerminalInput::move() {
  if (begin_ == end_) {
    fill();
  }
  if (begin_ < end_) {
    drain();
  }
}

void TerminalInput::fill() {
  const ssize_t got = ::read(input_, buffer_.data(), buffer_.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
    return;
  }
  begin_ = 0;
  end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got <= 0) {
    write_.reset();
  }
}

void TerminalInput::drain() {
  const ssize_t put = ::write(write_.get(), buffer_.data() + begin_, end_ - begin_);
  if (put > 0) {
    begin_ += static_cast<std::size_t>(put);
  }
  if (put < 0 && errno != EAGAIN && errno != EINTR) {
    write_.reset();
  }
  if (!write_) {
    begin_ = end_;
  }
}

}  // namespace shmem::launcher
