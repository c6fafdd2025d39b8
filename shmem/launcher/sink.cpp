// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/sink.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace shmem::launcher {

namespace {

/// Only pipes and terminals keep their writers waiting, and can be opened again by what they are open as.
UniqueFd reopen(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return UniqueFd();
  if (!S_ISFIFO(status.st_mode) && ::isatty(fd) == 0) return UniqueFd();
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool is_socket(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

Sink::Sink(int fd) : own_(reopen(fd)), fd_(own_ ? own_.get() : fd), is_socket_(is_socket(fd)) {}

void Sink::put(std::string_view bytes) {
  if (error_ != 0) return;
  pending_.append(bytes);
  flush();
}

ssize_t Sink::write(std::string_view bytes) const {
  if (is_socket_) return ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
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

}  // namespace shmem::launcher
