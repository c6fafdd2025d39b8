// SPDX-License-Identifier: Apache-2.0
// Every barrier algorithm on threads, for many team sizes and numbers of cores.
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/shmem/barrier_threads.hpp"

namespace {

using shmem_test::BarrierRun;
using shmem_test::check_as_threads;

class BarrierAlgorithms : public testing::TestWithParam<std::tuple<std::size_t, int>> {};

TEST_P(BarrierAlgorithms, LetNoMemberLeaveBeforeAllHaveEntered) {
  const auto [index, pes] = GetParam();
  BarrierRun run{.algorithm = shmem_test::algorithm_or_mixed(index), .pes = pes};
  if (pes > 33) {
    run.barriers = shmem_test::barriers_for(pes);
    EXPECT_EQ(check_as_threads(run), "") << to_string(run);
    return;
  }
  run.barriers = shmem_test::barriers_for(pes) / 4;
  for (const int cores : {1, 2, 3}) {
    run.cores = cores;
    EXPECT_EQ(check_as_threads(run), "") << to_string(run);
  }
  run.uneven = true;
  EXPECT_EQ(check_as_threads(run), "") << to_string(run);
}

std::string name_of_case(const testing::TestParamInfo<BarrierAlgorithms::ParamType>& info) {
  const auto algorithm = shmem_test::algorithm_or_mixed(std::get<0>(info.param));
  return std::string(algorithm ? name_of(*algorithm) : "mixed") + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Threads, BarrierAlgorithms,
                         testing::Combine(testing::Range(std::size_t{0}, shmem::kAlgorithms.size() + 1),
                                          testing::ValuesIn(shmem_test::kTeamSizes)),
                         name_of_case);

/// One member's part of barriers of which only the first half is by the algorithm: member 0 lets the others go.
std::string arrive_and_be_let_go(shmem_test::MemoryView view, const BarrierRun& run, const shmem_test::Cells& cells,
                                 std::atomic<std::uint64_t>& go, const shmem_test::FirstWrong& wrong) {
  const auto check = [&wrong] { return wrong.check(); };
  const auto policy = shmem::wait_policy(run.pes);
  shmem_test::WithData solo{shmem::SoloCore(policy, check)};
  shmem_test::DawdlingCore core(solo, static_cast<unsigned>(view.me()) + 1);
  for (std::uint64_t k = run.before + 1; k <= run.before + static_cast<std::uint64_t>(run.barriers); ++k) {
    core.write(cells.of(view.me(), 0, k), k);
    const auto choice = choice_of(run, k);
    if (const auto error = arrive_at_first_member(choice, core, view, k); error != std::errc{}) {
      return std::make_error_code(error).message();
    }
    for (int pe = 0; view.me() == 0 && pe < run.pes; ++pe) {
      if (core.read(cells.of(pe, 0, k)) != k) {
        return std::string(name_of(choice.algorithm)) + " let member 0 go on without member " + std::to_string(pe);
      }
    }
    if (view.me() == 0) {
      go.store(k, std::memory_order_release);
    }
    while (go.load(std::memory_order_acquire) < k && wrong.check() == std::errc{}) {
      std::this_thread::yield();
    }
  }
  return "";
}

TEST(FirstHalvesOfBarriers, BringAllMembersToTheFirst) {
  for (std::size_t index = 0; index <= shmem::kAlgorithms.size(); ++index) {
    for (const int pes : {2, 3, 5, 8}) {
      BarrierRun run{.algorithm = shmem_test::algorithm_or_mixed(index), .pes = pes};
      run.barriers = test_support::repeats(200, 20'000);
      shmem_test::TeamMemory memory(pes);
      std::vector<shmem_test::Cell> data(shmem_test::Cells::needed(run));
      const shmem_test::Cells cells(data, run);
      shmem_test::FirstWrong wrong;
      std::atomic<std::uint64_t> go{run.before};
      std::vector<std::jthread> threads;
      for (int pe = 0; pe < pes; ++pe) {
        threads.emplace_back([&, pe] { wrong.say(arrive_and_be_let_go({memory, pe}, run, cells, go, wrong)); });
      }
      threads.clear();
      EXPECT_EQ(wrong.text(), "") << to_string(run);
    }
  }
}

/// Between nodes the leader's part lasts long: the others must not have to wait for each other before it.
TEST(FirstHalvesOfBarriers, LetTheOthersGoAtACentralCounter) {
  shmem_test::TeamMemory memory(3);
  const auto arrive = [&memory](int member, std::errc give_up) {
    const auto check = [give_up] { return give_up; };
    const auto policy = shmem::wait_policy(3);
    shmem::SoloCore core(policy, check);
    return arrive_at_first_member({}, core, shmem_test::MemoryView(memory, member), 7);
  };
  EXPECT_EQ(arrive(2, std::errc::timed_out), std::errc{});
  EXPECT_EQ(arrive(0, std::errc::timed_out), std::errc::timed_out);  // member 1 is missing
  EXPECT_EQ(arrive(1, std::errc::timed_out), std::errc{});
  EXPECT_EQ(arrive(0, std::errc::timed_out), std::errc{});
}

}  // namespace
