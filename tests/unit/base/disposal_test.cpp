// SPDX-License-Identifier: Apache-2.0
#include "base/disposal.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace {

using base::Disposal;
using base::kMostSlowEnds;

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

struct DisposalTest : testing::Test {
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
};

TEST_F(DisposalTest, EndsThingsAlongsideSlowOnes) {
  const auto before = threads();
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
  const auto before = threads();
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
  expect_soon([] { return threads() == 1; }, "threads end");
}

TEST_F(DisposalTest, WaitsForCallsThatUseAThing) {
  auto used = thing(fast_ended);
  disposal->add(used);
  add_fast(1);
  expect_soon([&] { return fast_ended == 1; }, "the other one ends");
  used.reset();
  expect_soon([&] { return fast_ended == 2; }, "it ends");
}

}  // namespace
