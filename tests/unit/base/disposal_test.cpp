// SPDX-License-Identifier: Apache-2.0
#include "base/disposal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/fd.hpp"
#include "base/unix_address.hpp"
#include "tests/support/lingering_sockets.hpp"

namespace {

using base::Disposal;
using base::kMostSlowEnds;
using base::UniqueFd;

/// A thing whose end adds one to a count, after `until`.
std::shared_ptr<const void> thing(std::atomic<std::size_t>& ended, const std::shared_future<void>& until = {}) {
  return {&ended, [until](std::atomic<std::size_t>* count) {
            if (until.valid()) {
              until.wait();
            }
            ++*count;
          }};
}

void expect_soon(const std::function<bool()>& condition, const char* what) {
  for (int i = 0; i < 20'000 && !condition(); ++i) {
    ::usleep(1000);
  }
  EXPECT_TRUE(condition()) << what;
}

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// Those of the test before may be ending, an emulator's after they have been joined.
std::ptrdiff_t settled_threads() {
  std::ptrdiff_t least = threads();
  for (int i = 0; i < 100; ++i) {
    ::usleep(1000);
    least = std::min(least, threads());
  }
  return least;
}

struct DisposalTest : testing::Test {
  DisposalTest() {
    std::thread([] {}).join();  // a sanitizer starts one of its own with the first
    before = settled_threads();
  }
  void add_slow(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      disposal->add(thing(slow_ended, go));
    }
  }
  void add_fast(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      disposal->add(thing(fast_ended));
    }
  }

  std::atomic<std::size_t> slow_ended{0}, fast_ended{0};
  std::promise<void> release;
  const std::shared_future<void> go = release.get_future().share();
  std::optional<Disposal> disposal{std::in_place};
  std::ptrdiff_t before = 0;  // so many threads
};

TEST_F(DisposalTest, EndsThingsAlongsideSlowOnes) {
  for (std::size_t slow = 1; slow < kMostSlowEnds; ++slow) {
    add_slow(1);
    add_fast(10);
    expect_soon([&] { return fast_ended == 10 * slow; }, "fast ones end");
    EXPECT_FALSE(disposal->is_behind());
  }
  EXPECT_EQ(slow_ended, 0U);
  release.set_value();
  expect_soon([&] { return slow_ended == kMostSlowEnds - 1; }, "slow ones end");
  expect_soon([&] { return threads() == before + 1; }, "threads end");
  add_fast(1);
  expect_soon([&] { return fast_ended == 10 * (kMostSlowEnds - 1) + 1; }, "one more ends");
}

TEST_F(DisposalTest, EndsThingsBehindSlowOnesThatCameAtOnce) {
  add_slow(kMostSlowEnds - 1);
  add_fast(40);
  expect_soon([&] { return fast_ended == 40; }, "fast ones end");
  EXPECT_EQ(slow_ended, 0U);
  release.set_value();
}

TEST_F(DisposalTest, HasALimitOfThreads) {
  add_slow(kMostSlowEnds + 5);
  add_fast(10);
  expect_soon([&] { return threads() == before + static_cast<std::ptrdiff_t>(kMostSlowEnds); }, "all threads start");
  EXPECT_FALSE(disposal->is_behind());
  add_fast(100);
  EXPECT_TRUE(disposal->is_behind());
  EXPECT_EQ(threads(), before + static_cast<std::ptrdiff_t>(kMostSlowEnds));
  release.set_value();
  expect_soon([&] { return slow_ended == kMostSlowEnds + 5 && fast_ended == 110; }, "all end");
  EXPECT_FALSE(disposal->is_behind());
}

TEST_F(DisposalTest, LeavesSlowOnesToTheirThreads) {
  add_slow(3);
  add_fast(3);
  disposal.reset();
  EXPECT_EQ(slow_ended, 0U);
  release.set_value();
  expect_soon([&] { return slow_ended == 3 && fast_ended == 3; }, "all end");
  expect_soon([&] { return threads() == before; }, "threads end");
}

TEST_F(DisposalTest, WaitsForCallsThatUseAThing) {
  auto used = thing(fast_ended);
  disposal->add(used);
  add_fast(1);
  expect_soon([&] { return fast_ended == 1; }, "the other one ends");
  used.reset();
  expect_soon([&] { return fast_ended == 2; }, "it ends");
}

// ---- Unix sockets ----

struct Ends {
  explicit Ends(int type) {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
    here.reset(ends[0]);
    there.reset(ends[1]);
  }
  UniqueFd here, there;
};

/// True once no process has the socket that was `number`, which no other descriptor has got.
bool is_closed(int number) {
  return ::fcntl(number, F_GETFD) < 0;
}

struct DisposalOfSockets : DisposalTest, testing::WithParamInterface<int> {
  test_support::LingeringSockets sockets;
};

TEST_P(DisposalOfSockets, NeedsNoThreadIfNothingIsUnread) {
  Ends ends(GetParam());
  ASSERT_EQ(::send(ends.there.get(), "x", 1, 0), 1);
  char byte = 0;
  ASSERT_EQ(::recv(ends.here.get(), &byte, 1, 0), 1);
  ASSERT_EQ(::send(ends.here.get(), "answer", 6, 0), 6);
  disposal->close_socket(std::move(ends.here));
  EXPECT_TRUE(threads() == before || GetParam() == SOCK_STREAM);
  std::array<char, 8> answer{};
  EXPECT_EQ(::recv(ends.there.get(), answer.data(), answer.size(), 0), 6);
  EXPECT_LE(::send(ends.there.get(), "x", 1, MSG_NOSIGNAL), 0);
}

TEST_P(DisposalOfSockets, DoesNotWaitForUnreadDescriptors) {
  for (const std::size_t bytes : {0, 1}) {
    if (bytes == 0 && GetParam() == SOCK_STREAM) {
      continue;  // it has no empty messages
    }
    for (const bool is_behind_others : {false, true}) {
      Ends ends(GetParam());
      if (is_behind_others) {
        ASSERT_EQ(::send(ends.there.get(), "x", bytes, 0), static_cast<ssize_t>(bytes));
      }
      sockets.send(ends.there.get(), "x", bytes, 1);
      const int number = ends.here.get();
      const auto begin = std::chrono::steady_clock::now();
      disposal->close_socket(std::move(ends.here));
      expect_soon([&] { return is_closed(number); }, "closed by a thread");
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{20}) << "its close takes a minute";
      EXPECT_GT(threads(), before);
    }
  }
  sockets.end();
}

TEST_P(DisposalOfSockets, LeavesThoseOfItsParentOpen) {
  Ends ends(GetParam());
  const pid_t child = ::fork();
  if (child == 0) {
    disposal->close_socket(std::move(ends.here));
    disposal.reset();
    ::_exit(is_closed(ends.here.get()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(::send(ends.there.get(), "x", 1, MSG_NOSIGNAL), 1);
  char byte = 0;
  EXPECT_EQ(::recv(ends.here.get(), &byte, 1, 0), 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DisposalOfSockets, testing::Values(SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM),
                         [](const auto& kind) {
                           return kind.param == SOCK_STREAM      ? "Stream"
                                  : kind.param == SOCK_SEQPACKET ? "Messages"
                                                                 : "Datagrams";
                         });

TEST_F(DisposalTest, OfAListeningSocketDoesNotWaitForWhatHasConnected) {
  test_support::LingeringSockets sockets;
  const auto address = base::UnixAddress::of_text("@disposal-test-" + std::to_string(::getpid()));
  for (const bool has_messages : {false, true}) {
    UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(::bind(listener.get(), address.get(), address.size), 0);
    ASSERT_EQ(::listen(listener.get(), 4), 0);
    std::array<UniqueFd, 3> clients;
    for (auto& client : clients) {
      client.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      ASSERT_EQ(::connect(client.get(), address.get(), address.size), 0);
    }
    if (has_messages) {
      sockets.send(clients[1].get(), "x", 1, 1);
    }
    const auto begin = std::chrono::steady_clock::now();
    disposal->close_socket(std::move(listener));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{20}) << "a close takes a minute";
    EXPECT_EQ(threads() == before, !has_messages);
    for (const auto& client : clients) {
      char byte = 0;
      EXPECT_LE(::recv(client.get(), &byte, 1, 0), 0);
    }
  }
  sockets.end();
}

}  // namespace
