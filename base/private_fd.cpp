// SPDX-License-Identifier: Apache-2.0
#include "base/private_fd.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace base {
namespace {

// What the fork handler may read: fixed memory, no locks of others.

/// A set of descriptors. Threads add and remove their own; relaxed, because fork() of a thread that knows nothing of
/// another one's descriptor may as well come before it was added.
class FdSet {
 public:
  static constexpr int kEnd = 1 << 20;  // of Linux, unless /proc/sys/fs/nr_open says otherwise

  void add(int fd) {
    change(fd, [this, fd](Word& word, std::uint64_t bit) {
      word.fetch_or(bit, std::memory_order_relaxed);
      const std::size_t end = static_cast<std::size_t>(fd) / 64 + 1;
      std::size_t seen = end_.load(std::memory_order_relaxed);
      while (seen < end && !end_.compare_exchange_weak(seen, end, std::memory_order_relaxed)) {
      }
    });
  }
  void remove(int fd) {
    change(fd, [](Word& word, std::uint64_t bit) { word.fetch_and(~bit, std::memory_order_relaxed); });
  }
  template <typename Use>
  void for_each(Use use) const {
    const std::size_t end = end_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < end; ++i) {
      for (std::uint64_t word = words_[i].load(std::memory_order_relaxed); word != 0; word &= word - 1) {
        use(static_cast<int>(64 * i) + __builtin_ctzll(word));
      }
    }
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  template <typename Change>
  void change(int fd, Change change) {
    if (fd >= 0 && fd < kEnd) {
      change(words_[static_cast<std::size_t>(fd) / 64], std::uint64_t{1} << (fd % 64));
    }
  }
  std::array<Word, kEnd / 64> words_;
  std::atomic<std::size_t> end_{0};  // of the words that may have bits
};

constinit FdSet private_fds;
constinit FdSet private_epolls;
constinit std::atomic<int> dead_fd{-1};  // no event ever comes from it; -1: it could not be made
/// Held over a fork, and while a descriptor that is no socket is closed: between its removal and its end it may not be
/// inherited.
constinit std::mutex changes;
constinit Closing* closing_sockets = nullptr;  // under `changes`; each is on the stack of its thread

/// Calls `use` for each descriptor in what /proc/self/fdinfo has of an epoll descriptor: lines "tfd:  5 events: ...".
template <typename Use>
void for_each_line(std::string_view text, Use use) {
  constexpr std::string_view kStart = "tfd:";
  for (auto at = text.find(kStart); at != std::string_view::npos; at = text.find(kStart, at)) {
    at = std::min(text.find_first_not_of(' ', at + kStart.size()), text.size());
    int fd = -1;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), fd);
    if (error == std::errc{} && end != text.data() + text.size()) {  // else the number may go on in the next part
      use(fd);
    }
  }
}

/// The inode of a socket; 0 if `fd` is not a socket. It does not use fstat(): ThreadSanitizer would report a race with
/// the thread of another library that has just opened the descriptor.
ino_t socket_inode(int fd) {
  struct stat status {};
  return ::fstatat(fd, "", &status, AT_EMPTY_PATH) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

/// The descriptors that `epoll` waits for, and those that epoll descriptors among them wait for.
template <typename Use>
void for_each_member(int epoll, Use use, int depth = 0) {
  constexpr int kDeepest = 4;  // the kernel allows one more
  std::array<char, 32> name{};
  std::memcpy(name.data(), "/proc/self/fdinfo/", 18);
  *std::to_chars(name.data() + 18, name.data() + name.size() - 1, epoll).ptr = '\0';
  const int file = ::open(name.data(), O_RDONLY | O_CLOEXEC);
  std::array<char, 4096> part{};
  std::size_t kept = 0;  // the begin of a line
  for (ssize_t got = 0; file >= 0 && (got = ::read(file, part.data() + kept, part.size() - kept)) > 0;) {
    const std::string_view text(part.data(), kept + static_cast<std::size_t>(got));
    const auto whole = text.rfind('\n') + 1;  // 0: no line ends here
    for_each_line(text.substr(0, whole), [&](int fd) {
      if (depth < kDeepest && socket_inode(fd) == 0) {
        for_each_member(fd, use, depth + 1);
      }
      use(fd);
    });
    kept = text.size() - whole;
    std::memmove(part.data(), part.data() + whole, kept);
    kept = kept == part.size() ? 0 : kept;  // no such line has that many bytes
  }
  if (file >= 0) {
    ::close(file);
  }
}

/// Puts a descriptor from which no event ever comes in the place of `fd`, or at least closes that.
void replace(int fd) {
  if (::dup3(dead_fd.load(std::memory_order_relaxed), fd, O_CLOEXEC) >= 0) {
    return;
  }
  // There was no descriptor left when the first private one was made. Now there is the place of this one.
  ::close(fd);
  const int fresh = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fresh >= 0 && fresh != fd) {
    ::dup3(fresh, fd, O_CLOEXEC);
    ::close(fresh);
  }
}

void before_fork() {
  changes.lock();
}

void in_parent() {
  changes.unlock();
}

void in_child() {
  private_epolls.for_each([](int epoll) { for_each_member(epoll, replace); });
  private_fds.for_each(replace);
  // The threads that close these are not in this process.
  for (const Closing* one = std::exchange(closing_sockets, nullptr); one != nullptr; one = one->next()) {
    if (one->has_socket()) {
      replace(one->fd());
    }
  }
  changes.unlock();
}

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    dead_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ::pthread_atfork(before_fork, in_parent, in_child);
  });
}

}  // namespace

void keep_private(int fd) noexcept {
  if (fd >= 0) {
    install_handlers();
    private_fds.add(fd);
  }
}

Closing::Closing(int fd) noexcept : no_fork_(changes), fd_(fd), inode_(socket_inode(fd)) {
  private_fds.remove(fd);
  if (inode_ != 0) {
    next_ = std::exchange(closing_sockets, this);
    no_fork_.unlock();
  }
}

Closing::~Closing() {
  if (inode_ == 0) {
    return;
  }
  const std::lock_guard lock(changes);
  // Not there in a child that this thread has forked from a signal handler.
  for (Closing** one = &closing_sockets; *one != nullptr; one = &(*one)->next_) {
    if (*one == this) {
      *one = next_;
      return;
    }
  }
}

bool Closing::has_socket() const noexcept {
  return socket_inode(fd_) == inode_;
}

void PrivateFd::reset() noexcept {
  if (const int fd = std::exchange(fd_, -1); fd >= 0) {
    const Closing closing(fd);
    ::close(fd);
  }
}

PrivateEpoll::PrivateEpoll(int epoll) noexcept : epoll_(epoll) {
  if (epoll >= 0) {
    install_handlers();
    private_epolls.add(epoll);
  }
}

PrivateEpoll::~PrivateEpoll() {
  private_epolls.remove(epoll_);
}

void PrivateEpoll::close_on_exec() const noexcept {
  if (epoll_ >= 0) {
    for_each_member(epoll_, [](int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); });
  }
}

}  // namespace base
