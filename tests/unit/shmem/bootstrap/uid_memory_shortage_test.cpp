// SPDX-License-Identifier: Apache-2.0
// The start of a job by unique id when its threads have no memory: whichever allocation fails, no process ends, and no
// PE waits for its timeout.
#include <atomic>

#include "tests/support/failing_new.hpp"
#include "tests/unit/shmem/bootstrap/uid_job.hpp"

namespace {

thread_local bool is_pe = false;               // this thread's allocations never fail
constinit std::atomic<bool> counts{false};     // those of the server, and of the PEs' threads that listen to it
constinit std::atomic<long> until_failure{0};  // so many succeed before one fails
constinit std::atomic<int> fails_in_a_row{1};  // with those that follow
constinit std::atomic<int> failures{0};

}  // namespace

bool test_support::must_fail() {
  if (!counts || is_pe) {
    return false;
  }
  const long left = until_failure.fetch_sub(1);
  const bool fails = left <= 0 && left > -fails_in_a_row;
  failures += fails ? 1 : 0;
  return fails;
}

namespace shmem {
namespace {

using uid_test::Clock;
using uid_test::gather;
using uid_test::in_threads;
using uid_test::seconds;
using uid_test::Trouble;

class UidMemoryShortage : public Trouble {
 protected:
  static constexpr int kPes = 2;

  /// A stranger says nothing, another one nonsense, and the PEs start and make a step. False: nothing failed.
  bool start(long number, int in_a_row) {
    listener_ = std::nullopt;
    SetUp();
    const base::UniqueFd silent = knock();
    const base::UniqueFd foreign = knock();
    say(foreign, *hello(1, 3));
    failures = 0;
    until_failure = number;
    fails_in_a_row = in_a_row;
    const auto begin = Clock::now();
    counts = true;
    const auto texts = in_threads(kPes, [&](int pe) {
      is_pe = true;
      auto bootstrap = join(pe, kPes);
      if (!bootstrap) {
        return bootstrap.error().text;
      }
      std::string text = gather(**bootstrap, 100'000);
      (*bootstrap)->leave();
      return text;
    });
    counts = false;
    EXPECT_LT(Clock::now() - begin, seconds(20)) << "allocation " << number << ", " << in_a_row << " in a row";
    EXPECT_TRUE(failures > 0 || texts == std::vector<std::string>(kPes)) << ::testing::PrintToString(texts);
    return failures > 0;
  }
};

INSTANTIATE_TEST_SUITE_P(Here, UidMemoryShortage, ::testing::Values("127.0.0.1:0"));

TEST_P(UidMemoryShortage, OfTheServerAndOfListenersEndsNoProcess) {
  is_pe = true;
  struct Shortage {
    int in_a_row;
    long step;  // between the numbers of the first one
  };
  for (const auto& [in_a_row, step] : {Shortage{1, 2}, Shortage{3, 11}, Shortage{100, 37}}) {
    long number = 0;
    while (number < 150 && start(number, in_a_row) && !HasFailure()) {
      number += step;
    }
    EXPECT_GT(number, 20) << "they allocate less than this test expects";
  }
}

}  // namespace
}  // namespace shmem
