// SPDX-License-Identifier: Apache-2.0
// Collective calls by messages between threads.
#include "shmem/net/process_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <random>
#include <thread>

#include "shmem/collective/operations.hpp"
#include "shmem/net/message_cost.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/thread_network.hpp"

namespace {

using namespace std::chrono_literals;
using shmem::ProcessGroup;
using shmem_test::ThreadNetwork;
using shmem_test::Wires;
using testing::HasSubstr;

constexpr std::uint32_t kTeam = 0xfffffff0;
constexpr std::size_t kLarge = 600'000;  // bytes; for so many, groups of up to 16 members use other algorithms

/// The number of a member in the world.
int pe_of(int member) {
  return 3 * member + 1;
}
std::vector<int> pes_of(int size) {
  std::vector<int> pes;
  pes.reserve(static_cast<std::size_t>(size));
  for (int member = 0; member < size; ++member) {
    pes.push_back(pe_of(member));
  }
  return pes;
}

struct Member {
  ThreadNetwork& network;
  ProcessGroup& group;
  std::minstd_rand common;  // the same numbers on all members
  std::minstd_rand own;

  [[nodiscard]] int size() const { return group.size(); }
  [[nodiscard]] int me() const { return group.me(); }
  /// Usually few bytes, sometimes none and sometimes many.
  std::size_t length() {
    const auto kind = common() % 16;
    if (kind == 0) {
      return kLarge / 2 + common() % (kLarge / 2);
    }
    if (kind == 1) {
      return 0;
    }
    return common() % (kind < 8 ? 100 : 5000);
  }
  /// A random delay, so that messages of a later call arrive before this member makes its call.
  void dawdle() {
    if (own() % 8 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(own() % 200));
    }
  }
};

struct Run {
  int size;
  std::chrono::milliseconds limit = 20s;
  std::chrono::microseconds latest = 100us;
};

/// Runs `body` on all members at once. Expects that no request is under way afterwards.
void run_members(Wires& wires, const Run& run, const std::function<void(Member&)>& body) {
  wires.latest = run.latest;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(run.size));
  for (int i = 0; i < run.size; ++i) {
    threads.emplace_back([&, i] {
      ThreadNetwork network(wires, pe_of(i), run.limit);
      ProcessGroup group(network, pes_of(run.size), i, kTeam);
      Member member{network, group, std::minstd_rand(7), std::minstd_rand(static_cast<unsigned>(100 + i))};
      body(member);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wires.under_way(), 0U);
}

/// The text of a failure, or "".
template <typename T>
std::string text_of(const shmem::Result<T>& result) {
  return result ? "" : result.error().text;
}

unsigned byte_at(unsigned seed, int member, std::size_t i) {
  return (seed + static_cast<unsigned>(member) * 31 + static_cast<unsigned>(i) * 7) & 0xff;
}
void fill(std::span<std::byte> bytes, unsigned seed, int member) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(byte_at(seed, member, i));
  }
}
bool is_filled(std::span<const std::byte> bytes, unsigned seed, int member) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>(byte_at(seed, member, i))) {
      return false;
    }
  }
  return true;
}

/// Matrices, whose product is associative but not commutative.
struct Matrix {
  std::array<std::uint32_t, 4> of;
  friend bool operator==(const Matrix&, const Matrix&) = default;
  static Matrix apply(const Matrix& a, const Matrix& b) {
    return {{a.of[0] * b.of[0] + a.of[1] * b.of[2], a.of[0] * b.of[1] + a.of[1] * b.of[3],
             a.of[2] * b.of[0] + a.of[3] * b.of[2], a.of[2] * b.of[1] + a.of[3] * b.of[3]}};
  }
};
constexpr Matrix kIdentity{{1, 0, 0, 1}};
Matrix matrix(unsigned seed, int member, std::size_t i) {
  const auto number = static_cast<std::uint32_t>(i);
  const auto which = static_cast<std::uint32_t>(member);
  return {{seed + which, 3 + number, which * which + 1, seed ^ number}};
}
std::vector<Matrix> matrices(unsigned seed, int member, std::size_t count) {
  std::vector<Matrix> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(matrix(seed, member, i));
  }
  return all;
}
void multiply(void* first, const void* second, std::size_t count) {
  auto* to = static_cast<Matrix*>(first);
  const auto* from = static_cast<const Matrix*>(second);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = Matrix::apply(to[i], from[i]);
  }
}
constexpr shmem::Reduction kProduct{sizeof(Matrix), multiply};
/// The product over the first `members`.
std::vector<Matrix> product(unsigned seed, int members, std::size_t count) {
  std::vector<Matrix> all(count, kIdentity);
  for (int member = 0; member < members; ++member) {
    multiply(all.data(), matrices(seed, member, count).data(), count);
  }
  return all;
}

// Each of these makes one call and checks its result.
void broadcast(Member& member) {
  std::vector<std::byte> data(member.length());
  const int root = static_cast<int>(member.common() % static_cast<unsigned>(member.size()));
  const auto seed = static_cast<unsigned>(member.common());
  if (member.me() == root) {
    fill(data, seed, root);
  }
  ASSERT_EQ(text_of(member.group.broadcast(data.data(), data.size(), root)), "");
  ASSERT_TRUE(is_filled(data, seed, root)) << data.size() << " bytes of " << root;
}

void allreduce(Member& member) {
  const std::size_t count = member.length() / sizeof(Matrix);
  const auto seed = static_cast<unsigned>(member.common());
  auto data = matrices(seed, member.me(), count);
  ASSERT_EQ(text_of(member.group.allreduce(data.data(), count, kProduct)), "");
  ASSERT_TRUE(data == product(seed, member.size(), count)) << count << " elements";
}

void exclusive_scan(Member& member) {
  const std::size_t count = member.length() / sizeof(Matrix);
  const auto seed = static_cast<unsigned>(member.common());
  auto data = matrices(seed, member.me(), count);
  ASSERT_EQ(text_of(member.group.exclusive_scan(data.data(), count, kProduct)), "");
  const auto expected = member.me() == 0 ? std::vector<Matrix>(count, Matrix{}) : product(seed, member.me(), count);
  ASSERT_TRUE(data == expected) << count << " elements";
}

void allgather(Member& member) {
  std::vector<std::size_t> bytes;
  std::size_t sum = 0;
  for (int i = 0; i < member.size(); ++i) {
    sum += bytes.emplace_back(member.length() / 2);
  }
  const auto seed = static_cast<unsigned>(member.common());
  std::vector<std::byte> all(sum);
  const auto piece = [&](int which) {
    std::size_t offset = 0;
    for (int i = 0; i < which; ++i) {
      offset += bytes[static_cast<std::size_t>(i)];
    }
    return std::span(all).subspan(offset, bytes[static_cast<std::size_t>(which)]);
  };
  fill(piece(member.me()), seed, member.me());
  ASSERT_EQ(text_of(member.group.allgather(bytes, all.data())), "");
  for (int i = 0; i < member.size(); ++i) {
    ASSERT_TRUE(is_filled(piece(i), seed, i)) << bytes[static_cast<std::size_t>(i)] << " bytes of " << i;
  }
}

void alltoall(Member& member) {
  const auto n = static_cast<std::size_t>(member.size());
  std::vector<std::vector<std::byte>> given(n);
  std::vector<std::vector<std::byte>> taken(n);
  const auto seed = static_cast<unsigned>(member.common());
  const auto me = static_cast<std::size_t>(member.me());
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      const std::size_t bytes = member.length() / 4;
      if (from == me) {
        given[to].resize(bytes);
      }
      if (to == me) {
        taken[from].resize(bytes);
      }
    }
  }
  for (std::size_t to = 0; to < n; ++to) {
    fill(given[to], seed + static_cast<unsigned>(to), member.me());
  }
  const std::vector<std::span<const std::byte>> from(given.begin(), given.end());
  const std::vector<std::span<std::byte>> to(taken.begin(), taken.end());
  ASSERT_EQ(text_of(member.group.alltoall(from, to)), "");
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_TRUE(is_filled(taken[i], seed + static_cast<unsigned>(me), static_cast<int>(i))) << i;
  }
}

void allgather_of_values(Member& member) {
  struct Told {
    int pe;
    double number;
  };
  const auto all = member.group.allgather(Told{pe_of(member.me()), 0.5 * member.me()});
  ASSERT_EQ(text_of(all), "");
  for (int i = 0; i < member.size(); ++i) {
    ASSERT_EQ((*all)[static_cast<std::size_t>(i)].pe, pe_of(i));
    ASSERT_EQ((*all)[static_cast<std::size_t>(i)].number, 0.5 * i);
  }
}

/// How many barriers each member has entered.
using Arrivals = std::array<std::atomic<int>, 16>;
void expect_all_came(const Member& member, const Arrivals& arrivals) {
  const auto me = static_cast<std::size_t>(member.me());
  for (int i = 0; i < member.size(); ++i) {
    ASSERT_GE(arrivals[static_cast<std::size_t>(i)], arrivals[me]) << i;
  }
}

void barrier(Member& member, Arrivals& arrivals) {
  ++arrivals[static_cast<std::size_t>(member.me())];
  ASSERT_EQ(text_of(member.group.barrier()), "");
  expect_all_came(member, arrivals);
}

void split_barrier(Member& member, Arrivals& arrivals) {
  ++arrivals[static_cast<std::size_t>(member.me())];
  ASSERT_EQ(text_of(member.group.start_barrier()), "");
  for (auto looks = member.own() % 3; looks > 0 && member.group.barrier_is_open(); --looks) {
    const auto over = member.group.test_barrier();
    ASSERT_EQ(text_of(over), "");
    ASSERT_NE(*over, member.group.barrier_is_open());
    member.dawdle();
  }
  const auto limit = member.own() % 2 == 0 ? std::optional<std::chrono::nanoseconds>(60s) : std::nullopt;
  ASSERT_EQ(text_of(member.group.finish_barrier(limit)), "");
  ASSERT_FALSE(member.group.barrier_is_open());
  expect_all_came(member, arrivals);
}

const int kTimes = test_support::repeats(test_support::kEmulated ? 3 : 30, 1000);

class ProcessGroupOf : public testing::TestWithParam<int> {
 protected:
  template <typename Call>
  static void repeat(Call call) {
    Wires wires;
    run_members(wires, {.size = GetParam()}, [&](Member& member) {
      for (int i = 0; i < kTimes && !HasFatalFailure(); ++i) {
        call(member);
        member.dawdle();
      }
    });
    EXPECT_EQ(wires.left(), 0U);
  }
};

TEST_P(ProcessGroupOf, Broadcasts) {
  repeat(broadcast);
}
TEST_P(ProcessGroupOf, ReducesInOrder) {
  repeat(allreduce);
}
TEST_P(ProcessGroupOf, ScansInOrder) {
  repeat(exclusive_scan);
}
TEST_P(ProcessGroupOf, GathersUnequalPieces) {
  repeat(allgather);
}
TEST_P(ProcessGroupOf, ExchangesUnequalPieces) {
  repeat(alltoall);
}
TEST_P(ProcessGroupOf, GathersValues) {
  repeat(allgather_of_values);
}
TEST_P(ProcessGroupOf, HasBarriers) {
  Arrivals arrivals{};
  repeat([&](Member& member) { barrier(member, arrivals); });
}
TEST_P(ProcessGroupOf, HasBarriersOfTwoPhases) {
  Arrivals arrivals{};
  repeat([&](Member& member) { split_barrier(member, arrivals); });
}

TEST_P(ProcessGroupOf, KeepsDifferentCallsApart) {
  Arrivals arrivals{};
  const std::vector<std::function<void(Member&)>> calls{
      broadcast,
      allreduce,
      exclusive_scan,
      allgather,
      alltoall,
      allgather_of_values,
      [&](Member& member) { barrier(member, arrivals); },
      [&](Member& member) { split_barrier(member, arrivals); },
  };
  repeat([&](Member& member) { calls[member.common() % calls.size()](member); });
}

TEST_P(ProcessGroupOf, GivesAllTheSameBits) {
  const int size = GetParam();
  for (const std::size_t count : {std::size_t{5}, kLarge / sizeof(float)}) {
    std::vector<std::vector<float>> sums(static_cast<std::size_t>(size));
    Wires wires;
    run_members(wires, {.size = size}, [&](Member& member) {
      std::vector<float> data(count);
      for (float& number : data) {
        number = std::uniform_real_distribution<float>(-1, 1)(member.own);
      }
      ASSERT_EQ(text_of(member.group.allreduce(data.data(), count, shmem::reduction<shmem::Sum, float>())), "");
      sums[static_cast<std::size_t>(member.me())] = data;
    });
    for (const auto& sum : sums) {
      EXPECT_EQ(std::memcmp(sum.data(), sums[0].data(), count * sizeof(float)), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ProcessGroupOf, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16));

TEST(ProcessGroup, UsesOtherAlgorithmsForManyBytes) {
  for (int size = 3; size <= 16; ++size) {
    EXPECT_EQ(shmem::message_cost::segment_of_broadcast(size, 500), 0U);
    EXPECT_NE(shmem::message_cost::segment_of_broadcast(size, kLarge / 2), 0U) << size;
    EXPECT_FALSE(shmem::message_cost::shares_reduction(size, 500));
    EXPECT_TRUE(shmem::message_cost::shares_reduction(size, kLarge / 2)) << size;
  }
}

TEST(ProcessGroup, ReducesMoreThanItsScratchHolds) {
  Wires wires;
  for (const int size : {2, 3}) {
    run_members(wires, {.size = size}, [&](Member& member) {
      constexpr std::size_t kCount = std::size_t{5} << 20;  // 20 MiB
      std::vector<std::uint32_t> data(kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        data[i] = static_cast<std::uint32_t>(i) * (1U << member.me());
      }
      ASSERT_EQ(text_of(member.group.allreduce(data.data(), kCount, shmem::reduction<shmem::Sum, unsigned>())), "");
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(data[i], static_cast<std::uint32_t>(i) * ((1U << member.size()) - 1)) << i;
      }
    });
  }
}

TEST(ProcessGroup, RestartsItsCallNumbersWhenTagsWrap) {
  Wires wires;
  run_members(wires, {.size = 2, .latest = 0us}, [&](Member& member) {
    for (int i = 0; i < 40'000; ++i) {
      // Limits how many messages are under way at once.
      if (i % 64 == 0) {
        ASSERT_EQ(text_of(member.group.barrier()), "");
      }
      int data = member.me() == 0 ? i : -1;
      ASSERT_EQ(text_of(member.group.broadcast(&data, sizeof data, 0)), "");
      ASSERT_EQ(data, i);
    }
  });
}

TEST(ProcessGroup, LetsOtherGroupsCallWhileABarrierIsOpen) {
  Wires wires;
  run_members(wires, {.size = 5}, [&](Member& member) {
    ProcessGroup other(member.network, pes_of(5), member.me(), kTeam + 1);
    for (int i = 0; i < kTimes; ++i) {
      ASSERT_EQ(text_of(member.group.start_barrier()), "");
      member.dawdle();
      const auto all = other.allgather(i);
      ASSERT_EQ(text_of(all), "");
      ASSERT_EQ(*all, std::vector<int>(5, i));
      ASSERT_EQ(text_of(member.group.finish_barrier()), "");
    }
  });
}

TEST(ProcessGroup, KeepsABarrierOpenAfterATimeoutAndRefusesOtherCalls) {
  Wires wires;
  std::latch looked(1);
  run_members(wires, {.size = 2}, [&](Member& member) {
    if (member.me() == 1) {
      looked.wait();
      ASSERT_EQ(text_of(member.group.start_barrier()), "");
    } else {
      ASSERT_EQ(text_of(member.group.start_barrier()), "");
      EXPECT_FALSE(*member.group.test_barrier());
      const auto late = member.group.finish_barrier(2ms);
      EXPECT_EQ(late.error().code, std::errc::timed_out);
      EXPECT_THAT(late.error().text, HasSubstr("message from PE 4"));
      EXPECT_TRUE(member.group.barrier_is_open());
      EXPECT_EQ(member.group.barrier().error().code, std::errc::device_or_resource_busy);
      EXPECT_EQ(member.group.start_barrier().error().code, std::errc::device_or_resource_busy);
      looked.count_down();
    }
    ASSERT_EQ(text_of(member.group.finish_barrier(60s)), "");
    ASSERT_EQ(text_of(member.group.barrier()), "");
  });
}

TEST(ProcessGroup, NamesTheMissingAfterATimeoutAndStaysFailed) {
  Wires wires;
  run_members(wires, {.size = 3}, [&](Member& member) {
    if (member.me() == 2) {
      return;
    }
    const auto late = member.group.barrier(2ms);
    EXPECT_EQ(late.error().code, std::errc::timed_out);
    EXPECT_THAT(late.error().text, HasSubstr("barrier among 3 PEs: message from PE "));
    if (member.me() == 0) {
      EXPECT_THAT(late.error().text, HasSubstr("from PE 7: nothing came"));
    }
    int data = 0;
    EXPECT_EQ(member.group.broadcast(&data, sizeof data, member.me()).error().text, late.error().text);
    EXPECT_EQ(member.group.start_barrier().error().text, late.error().text);
  });
}

TEST(ProcessGroup, DoesNotMixUpCalls) {
  for (const bool split : {true, false}) {
    Wires wires;
    run_members(wires, {.size = 2, .limit = 2ms}, [&](Member& member) {
      if (member.me() == 0 && split) {
        ASSERT_EQ(text_of(member.group.start_barrier()), "");
        EXPECT_FALSE(member.group.finish_barrier());
        return;
      }
      if (member.me() == 0) {
        ASSERT_EQ(text_of(member.group.broadcast(nullptr, 0, 0)), "");
      }
      EXPECT_FALSE(member.group.barrier());
    });
  }
}

TEST(ProcessGroup, RefusesAMessageOfAnotherLength) {
  Wires wires;
  run_members(wires, {.size = 2}, [&](Member& member) {
    std::array<char, 8> data{};
    const auto done = member.group.broadcast(data.data(), member.me() == 0 ? 8 : 4, 0);
    if (member.me() == 1) {
      EXPECT_EQ(done.error().code, std::errc::message_size);
      EXPECT_THAT(done.error().text, HasSubstr("broadcast among 2 PEs: message from PE 1"));
    }
  });
}

/// The limit of waits for members that have failed.
constexpr std::chrono::milliseconds kLimit{30};

/// Makes every call once, until one fails.
shmem::Result<void> make_all_calls(ProcessGroup& group) {
  const auto n = static_cast<std::size_t>(group.size());
  std::vector<std::uint32_t> data(kLarge / sizeof(std::uint32_t));
  std::vector<std::uint32_t> all(n * 1000);
  const auto sum = shmem::reduction<shmem::Sum, std::uint32_t>();
  const std::vector<std::span<const std::byte>> from(n, std::as_bytes(std::span(data).first(1000)));
  std::vector<std::span<std::byte>> to;
  for (std::size_t i = 0; i < n; ++i) {
    to.push_back(std::as_writable_bytes(std::span(all).subspan(i * 1000, 1000)));
  }
  const std::vector<std::function<shmem::Result<void>()>> calls{
      [&] { return group.allreduce(data.data(), data.size(), sum); },
      [&] { return group.barrier(); },
      [&] { return group.broadcast(data.data(), kLarge, 0); },
      [&] { return group.start_barrier(); },
      [&] { return group.finish_barrier(kLimit); },
      [&] { return group.alltoall(from, to); },
      [&] { return group.exclusive_scan(data.data(), 100, sum); },
      [&] { return group.allreduce(data.data(), 100, sum); },
      [&] { return group.broadcast(data.data(), 400, group.size() - 1); },
      [&] { return group.allgather(std::vector<std::size_t>(n, 4000), all.data()); },
  };
  for (const auto& call : calls) {
    if (auto ok = call(); !ok) {
      return ok;
    }
  }
  return {};
}

TEST(ProcessGroup, EndsOnAllWhenTheNetworkFails) {
  int failures = 0;
  for (const int size : {2, 3, 5, 8}) {
    for (int call = 1; call < 60; call += test_support::repeats(test_support::kEmulated ? 24 : 6, 1)) {
      Wires wires;
      std::atomic<int> broken{0};
      run_members(wires, {.size = size, .limit = kLimit}, [&](Member& member) {
        if (member.me() == call % size) {
          member.network.fail_at(call);
        }
        const auto ok = make_all_calls(member.group);
        if (ok) {
          return;
        }
        if (ok.error().code == std::errc::io_error) {
          ++broken;
        }
        EXPECT_THAT(ok.error().text, HasSubstr("message "));
        if (member.group.barrier_is_open()) {
          return;  // a barrier that timed out stays open and can still complete
        }
        EXPECT_EQ(make_all_calls(member.group).error().text, ok.error().text);
      });
      EXPECT_LE(broken, 1);
      failures += broken;
    }
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
