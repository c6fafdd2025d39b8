// SPDX-License-Identifier: Apache-2.0
#include "base/private_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "tests/support/lingering_sockets.hpp"

namespace {

using base::PrivateEpoll;
using base::PrivateFd;
using base::UniqueFd;

struct Connection {
  UniqueFd here, there;
};

Connection connect() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool has_ended(const UniqueFd& connection, int milliseconds = 0) {
  pollfd end{connection.get(), 0, 0};
  return ::poll(&end, 1, milliseconds) == 1 && (end.revents & POLLHUP) != 0;
}

/// How long to wait for the end itself: a child that has not run yet holds it back, and input has come before it.
constexpr int kSoon = 10000;

/// A forked child that lives as long as this.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ < 0) {
      std::abort();  // kill(-1) would reach every process
    }
    if (pid_ == 0) {
      for (;;) {
        ::pause();
      }
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

/// What `body` returns in a forked child.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PrivateFd, EndsWithItsProcessThoughAChildLives) {
  auto [here, there] = connect();
  PrivateFd mine(std::move(here));
  const Child child;
  EXPECT_FALSE(has_ended(there));
  mine.reset();
  EXPECT_TRUE(has_ended(there, kSoon));
}

TEST(PrivateFd, HasADeadDescriptorOfItsNumberInAChild) {
  auto [here, there] = connect();
  const PrivateFd mine(std::move(here));
  ASSERT_EQ(::send(there.get(), "x", 1, 0), 1);
  EXPECT_EQ(in_child([&mine] {
              char byte = 0;
              const bool is_dead = ::recv(mine.get(), &byte, 1, 0) < 0 && errno == ENOTSOCK;
              return is_dead && ::fcntl(mine.get(), F_GETFD) == FD_CLOEXEC ? 0 : 1;
            }),
            0);
  char byte = 0;
  EXPECT_EQ(::recv(mine.get(), &byte, 1, 0), 1);
}

TEST(PrivateFd, LeavesOthersToChildren) {
  auto first = connect();
  const int number = first.here.get();
  {
    PrivateFd mine(std::move(first.here));
    PrivateFd moved(std::move(mine));
    EXPECT_FALSE(mine);  // NOLINT(bugprone-use-after-move): what it tests
    EXPECT_EQ(moved.get(), number);
  }
  const auto second = connect();  // reuses the number
  ASSERT_EQ(second.here.get(), number);
  ASSERT_EQ(::send(second.there.get(), "x", 1, 0), 1);
  EXPECT_EQ(in_child([&second] {
              char byte = 0;
              return ::recv(second.here.get(), &byte, 1, 0) == 1 ? 0 : 1;
            }),
            0);
}

TEST(PrivateFd, IsNotWaitedForByForksIfItsCloseTakesLong) {
  test_support::LingeringSockets sockets;
  auto [here, there] = connect();
  sockets.send(there.get(), "x", 1, 1);
  PrivateFd mine(std::move(here));
  const int number = mine.get();
  const std::jthread closing([&mine] { mine.reset(); });
  while (::fcntl(number, F_GETFD) >= 0) {
    std::this_thread::yield();
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(in_child([number] { return ::fcntl(number, F_GETFD) < 0 ? 0 : 1; }), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{20}) << "the close takes a minute";
  sockets.end();
}

TEST(PrivateFd, IsNotInAChildThatIsForkedWhileItIsClosed) {
  auto [here, there] = connect();
  const int number = here.get();
  base::keep_private(number);
  const base::Closing closing(number);
  const Child child;
  here.reset();
  EXPECT_TRUE(has_ended(there, kSoon));
  // Another thread gets the number before the first one knows that the close is over.
  const auto next = connect();
  ASSERT_EQ(next.here.get(), number);
  ASSERT_EQ(::send(next.there.get(), "x", 1, 0), 1);
  EXPECT_EQ(in_child([&next] {
              char byte = 0;
              return ::recv(next.here.get(), &byte, 1, 0) == 1 ? 0 : 1;
            }),
            0);
}

TEST(PrivateFd, ThatIsNoSocketIsClosedBetweenForks) {
  const int file = ::dup(STDERR_FILENO);
  std::atomic<bool> forked{false};
  std::jthread forking;
  {
    const base::Closing closing(file);
    forking = std::jthread([&forked] {
      EXPECT_EQ(in_child([] { return 0; }), 0);
      forked = true;
    });
    ::usleep(50'000);
    EXPECT_FALSE(forked);
    ::close(file);
  }
  forking.join();
  EXPECT_TRUE(forked);
}

int epoll_with(const std::vector<int>& fds) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (const int fd : fds) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
  }
  return epoll;
}

TEST(PrivateEpoll, KeepsWhatItWaitsForFromChildren) {
  // More than fit into one read of the list.
  std::vector<Connection> connections;
  std::vector<int> fds;
  for (int i = 0; i < 200; ++i) {
    connections.push_back(connect());
    fds.push_back(connections.back().here.get());
  }
  const UniqueFd inner(epoll_with(fds));
  auto direct = connect();
  const UniqueFd outer(epoll_with({inner.get(), direct.here.get()}));
  const PrivateEpoll mine(outer.get());
  const Child child;
  direct.here.reset();
  for (auto& connection : connections) {
    connection.here.reset();
    ASSERT_TRUE(has_ended(connection.there, kSoon));
  }
  EXPECT_TRUE(has_ended(direct.there, kSoon));
}

TEST(PrivateEpoll, KeepsWhatItWaitsForFromPrograms) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Connection open{UniqueFd(ends[0]), UniqueFd(ends[1])};
  const UniqueFd epoll(epoll_with({open.here.get()}));
  EXPECT_EQ(::fcntl(open.here.get(), F_GETFD), 0);
  PrivateEpoll(epoll.get()).close_on_exec();
  EXPECT_EQ(::fcntl(open.here.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(open.there.get(), F_GETFD), 0);
}

}  // namespace
