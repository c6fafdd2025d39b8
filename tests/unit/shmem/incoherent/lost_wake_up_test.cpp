// SPDX-License-Identifier: Apache-2.0
// Nobody sleeps on a word that has changed, whatever the schedule; and every sequentially consistent operation of
// waiting and waking is one for a reason.
#include <gtest/gtest.h>

#include "shmem/cores/core.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/incoherent/interleavings.hpp"

namespace {

using incoherent::Interleavings;
using incoherent::ModelAtomic;
using incoherent::Site;

/// A SyncWord of the model.
struct ModelWord {
  explicit ModelWord(Interleavings& all) : value(all, 0), sleepers(all, 1) {}
  ModelAtomic value;
  ModelAtomic sleepers;
};

/// Thread 0 changes the word from 0 to `last`, by one each time, with change(word, value after it); thread 1
/// waits for the last value.
template <typename Change>
class OneWaiter {
 public:
  OneWaiter(std::uint64_t last, Change change) : last_(last), change_(change) {}

  bool always_ends(const Site& weakened = {}) {
    return all_.all_end([this](int thread) { thread == 0 ? make_changes() : wait(); }, weakened);
  }
  [[nodiscard]] const Interleavings& all() const { return all_; }

 private:
  void make_changes() {
    ModelWord word(all_);
    for (std::uint64_t value = 1; value <= last_; ++value) {
      change_(word, value);
    }
  }
  void wait() {
    ModelWord word(all_);
    const shmem::WaitPolicy asleep_at_once{0, 0};
    const auto done = [this](std::uint64_t seen) { return seen == last_; };
    EXPECT_EQ(shmem::wait_on(word, asleep_at_once, done, [] { return std::errc{}; }), std::errc{});
  }

  Interleavings all_{2};
  std::uint64_t last_;
  Change change_;
};

template <typename Change>
void expect_none_lost(Change change) {
  for (int last = 1; last <= test_support::repeats(1, 2); ++last) {
    OneWaiter run(static_cast<std::uint64_t>(last), change);
    EXPECT_TRUE(run.always_ends());
    EXPECT_GT(run.all().schedules(), 100);
    std::printf("%d schedules\n", run.all().schedules());
  }
}

template <typename Change>
void expect_every_order_needed(Change change) {
  OneWaiter run(1, change);
  ASSERT_TRUE(run.always_ends());
  const std::vector<Site> sites = run.all().sites();
  EXPECT_EQ(sites.size(), 4U);  // the change, the look for sleepers; the sleeper's count, his second look
  for (const Site& site : sites) {
    EXPECT_FALSE(run.always_ends(site)) << "may be relaxed: " << site.text();
  }
}

constexpr auto kPublish = [](ModelWord& word, std::uint64_t value) { shmem::publish(word, value); };
constexpr auto kAdd = [](ModelWord& word, std::uint64_t /*value*/) { shmem::add(word, 1); };

TEST(LostWakeUpTest, NoneAfterPublish) {
  expect_none_lost(kPublish);
}

TEST(LostWakeUpTest, NoneAfterAdd) {
  expect_none_lost(kAdd);
}

TEST(LostWakeUpTest, EveryOrderOfPublishIsNeeded) {
  expect_every_order_needed(kPublish);
}

TEST(LostWakeUpTest, EveryOrderOfAddIsNeeded) {
  expect_every_order_needed(kAdd);
}

}  // namespace
