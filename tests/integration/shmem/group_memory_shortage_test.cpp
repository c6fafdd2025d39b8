// SPDX-License-Identifier: Apache-2.0
// Calls of a group when there is no memory: whichever allocation fails, no process ends, and no member waits for its
// timeout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "tests/integration/shmem/group_checks.hpp"
#include "tests/support/job.hpp"

namespace {

std::atomic<bool> counts{false};       // the allocations of this process
std::atomic<long> until_failure{0};    // so many succeed before one fails
std::atomic<bool> stays_short{false};  // all later ones fail, too
std::atomic<int> failures{0};

void* allocate(std::size_t size) {
  if (counts) {
    const long left = until_failure.fetch_sub(1);
    if (left == 0 || (left < 0 && stays_short)) {
      ++failures;
      throw std::bad_alloc();
    }
  }
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

// In the place of the C++ library's, also for libshmem.
void* operator new(std::size_t size) {
  return allocate(size);
}
void* operator new[](std::size_t size) {
  return allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace {

using namespace group_ranks;

constexpr std::uint64_t kLimit = 120'000'000'000;

/// A call of both ranks; of rank 0 an allocation fails.
using Call = std::function<int(shmemx_group_t* group, int rank)>;
/// Where the ranks are: run_ranks().
using Hosts = std::vector<const char*>;
const Hosts kNodes{"kiwi", "lemon"};

/// What a rank finds wrong in its call.
std::string problem_of(int error, int rank, std::chrono::steady_clock::duration took) {
  const bool other_has_failed = error == -ECANCELED || error == -EOWNERDEAD || error == -ECONNRESET;
  std::string bad = took > std::chrono::seconds(60) ? "it has waited for its timeout; " : "";
  if (error != 0 && error != -ENOMEM && (rank == 0 || !other_has_failed)) {
    bad += std::to_string(error) + ": " + shmemx_error_text();
  }
  return bad;
}

/// The allocation with this number fails. False: the call makes fewer.
bool run_short(const Call& call, const Hosts& hosts, long number, bool stays) {
  const SharedCount reached;
  const SharedCount over;
  const std::string bad = run_ranks(
      2,
      [&](shmemx_group_t* group, int rank, int size) -> std::string {
        std::string wrong = check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, size, 8, 0);
        stays_short = stays;
        until_failure = number;
        const auto began = std::chrono::steady_clock::now();
        counts = rank == 0;
        int error = call(group, rank);
        counts = false;
        if (error == -ENOMEM && rank == 0) {
          error = call(group, rank);  // goes on, or fails for good
        }
        wrong += problem_of(error, rank, std::chrono::steady_clock::now() - began);
        if (failures != 0) {
          reached.add();
        }
        over.add();
        // A rank that leaves ends the call of the other one.
        for (const auto end = began + std::chrono::seconds(180);
             over.get() < 2 && std::chrono::steady_clock::now() < end;) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return wrong;
      },
      hosts);
  EXPECT_EQ("", bad) << "allocation " << number << (stays ? " and all later ones" : "");
  return reached.get() != 0;
}

/// Each allocation in turn.
void expect_errors(const Call& call, const Hosts& hosts = {}) {
  constexpr long kMost = 60;
  for (const bool stays : {false, true}) {
    long number = 0;
    while (number < kMost && run_short(call, hosts, number, stays) && !testing::Test::HasFailure()) {
      ++number;
    }
    EXPECT_GT(number, 0);
  }
}

/// From rank `from` to the other one.
int message(shmemx_group_t* group, int rank, int from, std::size_t bytes, std::uint32_t type) {
  std::vector<std::uint8_t> data;
  const bool counted = counts.exchange(false);
  data.resize(bytes);
  counts = counted;
  shmemx_group_message_t* message = nullptr;
  int error =
      rank == from
          ? shmemx_group_send_typed(group, data.data(), bytes, type, 1 - rank, 1, kLimit, nullptr, nullptr, &message)
          : shmemx_group_receive_typed(group, data.data(), bytes, type, from, 1, kLimit, nullptr, nullptr, &message);
  if (error == 0) {
    error = shmemx_group_message_wait(message);
    shmemx_group_message_free(message);
  }
  return error;
}

int allreduce(shmemx_group_t* group, std::size_t bytes) {
  const bool counted = counts.exchange(false);
  std::vector<std::uint8_t> data(bytes);
  counts = counted;
  void* place = data.data();
  shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLREDUCE);
  call.from = &place;
  call.to = &place;
  call.bytes = bytes;
  call.timeout_ns = kLimit;
  return shmemx_group_run(group, &call);
}

int send(shmemx_group_t* group, int rank) {
  return message(group, rank, 0, 100, 3);
}
int receive(shmemx_group_t* group, int rank) {
  return message(group, rank, 1, 300'000, 3);
}
int small_allreduce(shmemx_group_t* group, int /*rank*/) {
  return allreduce(group, 100);
}
int large_allreduce(shmemx_group_t* group, int /*rank*/) {
  return allreduce(group, 3'000'000);
}

TEST(GroupMemoryShortage, SendingAMessage) {
  expect_errors(send);
}

TEST(GroupMemoryShortage, ReceivingAMessage) {
  expect_errors(receive);
}

TEST(GroupMemoryShortage, CollectiveCallsOfOneNodeNeedNone) {
  EXPECT_FALSE(run_short(small_allreduce, {}, 0, true));
  EXPECT_FALSE(run_short(large_allreduce, {}, 0, true));
}

class GroupMemoryShortageOnNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test_support::has_network()) {
      GTEST_SKIP() << test_support::kNoNetwork;
    }
  }
};

TEST_F(GroupMemoryShortageOnNodes, SendingAMessage) {
  expect_errors(send, kNodes);
}

TEST_F(GroupMemoryShortageOnNodes, ReceivingAMessage) {
  expect_errors(receive, kNodes);
}

TEST_F(GroupMemoryShortageOnNodes, SmallCollectiveCalls) {
  expect_errors(small_allreduce, kNodes);
}

TEST_F(GroupMemoryShortageOnNodes, LargeCollectiveCalls) {
  expect_errors(large_allreduce, kNodes);
}

/// In rank 0 the allocation with this number fails. Rank 1 is there as long as that takes. False: it makes fewer.
bool create_short(long number, bool stays, const Hosts& hosts) {
  SharedStore store;
  const SharedCount reached;
  const SharedCount over;
  const std::string bad = run_ranks(
      2,
      [&](shmemx_group_t* /*first*/, int rank, int size) -> std::string {
        std::thread end;
        if (rank == 1) {
          end = std::thread([&] {
            while (over.get() == 0) {
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            ::_exit(0);
          });
        }
        const shmemx_group_store_t calls = store.calls();
        shmemx_group_t* group = nullptr;
        stays_short = stays;
        until_failure = number;
        counts = rank == 0;
        const int error = shmemx_group_create(&calls, rank, size, &group);
        counts = false;
        if (rank == 1) {
          end.join();  // does not return
        }
        if (failures != 0) {
          reached.add();
        }
        over.add();
        const std::string text = shmemx_error_text();
        shmemx_group_destroy(group);
        return error == 0 || error == -ENOMEM ? "" : std::to_string(error) + ": " + text;
      },
      hosts);
  EXPECT_EQ("", bad) << "allocation " << number << (stays ? " and all later ones" : "");
  return reached.get() != 0;
}

void expect_errors_of_creating(const Hosts& hosts) {
  constexpr long kEach = 40;  // of the first ones; then some
  constexpr long kMost = 20'000;
  for (const bool stays : {false, true}) {
    long number = 0;
    while (number < kMost && create_short(number, stays, hosts) && !testing::Test::HasFailure()) {
      number += 1 + std::max(0L, number - kEach) / 8;
    }
    EXPECT_GT(number, 0);
  }
}

TEST_F(GroupMemoryShortageOnNodes, CreatingAGroup) {
  expect_errors_of_creating(kNodes);
}

TEST(GroupMemoryShortage, CreatingAGroup) {
  expect_errors_of_creating({});
}

TEST(GroupMemoryShortage, SymmetricMemory) {
  expect_errors([](shmemx_group_t* group, int /*rank*/) {
    shmemx_group_memory_t* memory = nullptr;
    const int error = shmemx_group_allocate(group, 4096, kLimit, &memory);
    if (error == 0) {
      shmemx_group_memory_free(memory);
    }
    return error;
  });
}

/// More than any memory has: of the sender, before its receiver would have to keep it.
TEST(GroupMemoryShortage, AMessageOfAbsurdSizeIsRefused) {
  EXPECT_EQ("", run_ranks(2, [](shmemx_group_t* group, int rank, int size) -> std::string {
              std::uint8_t byte = 0;
              shmemx_group_message_t* message = nullptr;
              const int error = shmemx_group_send(group, &byte, std::size_t{1} << 63, 1 - rank, 1, kLimit, nullptr,
                                                  nullptr, &message);
              return error == -EINVAL ? check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, size, 8, 0)
                                      : "got " + std::to_string(error);
            }));
}

}  // namespace
