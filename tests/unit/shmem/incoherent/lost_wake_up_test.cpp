// SPDX-License-Identifier: Apache-2.0
// In no schedule does a thread sleep on a word that has changed; and every sequentially consistent operation of waiting
// and waking is needed.
#include <gtest/gtest.h>

#include "shmem/cores/core.hpp"
#include "shmem/layout/parking.hpp"
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

/// Thread 0 changes a word from 0 to `last` in steps of one; thread 1 waits for the last value.
struct Protocol {
  using Part = void (*)(Interleavings& all, std::uint64_t last);
  Part change;
  Part wait;
};

bool always_ends(Interleavings& all, const Protocol& protocol, std::uint64_t last, const Site& weakened = {}) {
  return all.all_end([&](int thread) { (thread == 0 ? protocol.change : protocol.wait)(all, last); }, weakened);
}

void expect_none_lost(const Protocol& protocol) {
  for (int last = 1; last <= test_support::repeats(1, 2); ++last) {
    Interleavings all(2);
    EXPECT_TRUE(always_ends(all, protocol, static_cast<std::uint64_t>(last)));
    EXPECT_GT(all.schedules(), 100);
  }
}

void expect_every_order_needed(const Protocol& protocol, std::size_t orders) {
  Interleavings all(2);
  ASSERT_TRUE(always_ends(all, protocol, 1));
  const std::vector<Site> sites = all.sites();
  EXPECT_EQ(sites.size(), orders);
  for (const Site& site : sites) {
    EXPECT_FALSE(always_ends(all, protocol, 1, site)) << "may be relaxed: " << site.text();
  }
}

const shmem::WaitPolicy kAsleepAtOnce{0, 0};
std::errc go_on() {
  return {};
}

void publish_each(Interleavings& all, std::uint64_t last) {
  ModelWord word(all);
  for (std::uint64_t value = 1; value <= last; ++value) {
    shmem::publish(word, value);
  }
}

void wait_for_last(Interleavings& all, std::uint64_t last) {
  ModelWord word(all);
  const auto done = [last](std::uint64_t seen) { return seen == last; };
  EXPECT_EQ(shmem::wait_on(word, kAsleepAtOnce, done, go_on), std::errc{});
}

/// A Job of one PE in the model.
struct ModelJob {
  struct Metadata {
    struct {
      ModelAtomic sleepers;
      ModelAtomic event;
    } parking;
  };

  explicit ModelJob(Interleavings& all) : own{{{all, 1}, {all, 2}}}, word(all, 0) {}
  [[nodiscard]] Metadata& metadata(int /*pe*/) const { return own; }

  int me = 0;
  shmem::WaitPolicy policy = kAsleepAtOnce;
  mutable Metadata own;
  ModelAtomic word;
};

// Changes the word as the signals of the interface do.
void signal_each(Interleavings& all, std::uint64_t last) {
  ModelJob job(all);
  for (std::uint64_t value = 1; value <= last; ++value) {
    job.word.exchange(value, std::memory_order_seq_cst);
    shmem::wake_parked(job, 0);
  }
}

void wait_for_signal(Interleavings& all, std::uint64_t last) {
  ModelJob job(all);
  const auto done = [&] { return job.word.load(std::memory_order_acquire) == last; };
  EXPECT_EQ(shmem::wait_parked(job, done, go_on), std::errc{});
}

// Changes the word as a put does, without any order.
void put_each(Interleavings& all, std::uint64_t last) {
  ModelJob job(all);
  for (std::uint64_t value = 1; value <= last; ++value) {
    job.word.exchange(value, std::memory_order_relaxed);
    shmem::wake_parked(job, 0);
  }
}

constexpr Protocol kPublish{publish_each, wait_for_last};
constexpr Protocol kSignal{signal_each, wait_for_signal};
constexpr Protocol kPut{put_each, wait_for_signal};

TEST(LostWakeUpTest, NoneOnAWord) {
  expect_none_lost(kPublish);
}

TEST(LostWakeUpTest, NoneOnASignal) {
  expect_none_lost(kSignal);
}

TEST(LostWakeUpTest, NoneOnAPutIfTheKernelHasStoreBarriers) {
  for (int last = 1; last <= test_support::repeats(1, 2); ++last) {
    Interleavings all(2);
    EXPECT_FALSE(always_ends(all, kPut, static_cast<std::uint64_t>(last))) << "must be lost without a store barrier";
    all.allow_store_barriers();
    EXPECT_TRUE(always_ends(all, kPut, static_cast<std::uint64_t>(last)));
    EXPECT_GT(all.schedules(), 100);
    EXPECT_TRUE(always_ends(all, kSignal, static_cast<std::uint64_t>(last)));
  }
}

TEST(LostWakeUpTest, EveryOrderOnAWordIsNeeded) {
  constexpr std::size_t kOrders = 4;  // the change, the look for sleepers; the sleeper's count, its second look
  expect_every_order_needed(kPublish, kOrders);
}

TEST(LostWakeUpTest, EveryOrderOnASignalIsNeeded) {
  constexpr std::size_t kOrders = 5;  // the same four, and the event
  expect_every_order_needed(kSignal, kOrders);
}

}  // namespace
