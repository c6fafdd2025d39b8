// SPDX-License-Identifier: Apache-2.0
// Barriers among lists of PEs, which are threads: no PE leaves one before all PEs of the list have entered it.
#include "shmem/barrier/partial.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "shmem/config/log.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using shmem::ListMonitor;
using shmem::PeList;
using shmem::SoloCore;
using shmem::SyncWord;
using shmem::TeamMap;
using shmem_test::run_job;
using testing::HasSubstr;

shmem::Result<PeList> list_of(const Job& job, const std::vector<std::uint32_t>& members, const TeamMap& team) {
  return PeList::create(job.me, team, members.data(), static_cast<std::uint32_t>(members.size()));
}

std::errc synchronize(const Job& job, const PeList& list, std::string* text = nullptr) {
  ListMonitor monitor(job, list, "shmem: ");
  SoloCore core(job.policy, monitor);
  const std::errc error = shmem::partial_sync(core, shmem::ListWords(job), list, monitor.waits_for());
  if (text != nullptr && error != std::errc{}) {
    *text = monitor.explain(error);
  }
  return error;
}

/// A limit for the PEs that would wait without end after a failure.
shmem::Options bounded() {
  shmem::Options options;
  options.barrier_timeout = std::chrono::seconds{20};
  return options;
}

class PartialBarrier : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Pes, PartialBarrier, testing::Values(2, 3, 5, 8, 12),
                         [](const auto& test) { return std::to_string(test.param); });

TEST_P(PartialBarrier, HoldsForListsThatOverlapAndChange) {
  const int pes = GetParam();
  const int calls = test_support::repeats(1000, 30000);
  struct Call {
    std::vector<std::uint32_t> members;
    std::atomic<int> entered{0};
  };
  std::vector<Call> all(static_cast<std::size_t>(calls));
  std::mt19937 random(static_cast<unsigned>(pes));
  for (Call& call : all) {
    std::vector<std::uint32_t> everybody(static_cast<std::size_t>(pes));
    std::iota(everybody.begin(), everybody.end(), 0U);
    std::shuffle(everybody.begin(), everybody.end(), random);
    everybody.resize(1 + random() % everybody.size());
    call.members = everybody;
  }
  run_job(
      pes,
      [&](const Job& job) {
        std::mt19937 mine(static_cast<unsigned>(job.me));
        const TeamMap world{0, 1, pes};
        for (Call& call : all) {
          std::vector<std::uint32_t> members = call.members;
          if (std::find(members.begin(), members.end(), static_cast<std::uint32_t>(job.me)) == members.end()) {
            continue;
          }
          std::shuffle(members.begin(), members.end(), mine);  // the order of the list differs from PE to PE
          if (mine() % 16 == 0) {
            std::this_thread::yield();
          }
          call.entered.fetch_add(1, std::memory_order_relaxed);
          const std::errc error = synchronize(job, *list_of(job, members, world));
          if (error != std::errc{} ||
              call.entered.load(std::memory_order_relaxed) != static_cast<int>(members.size())) {
            job.bootstrap->abort(1, "");  // ends the waits of the other PEs
            FAIL() << std::make_error_code(error).message() << ", " << call.entered.load() << " of " << members.size();
          }
        }
      },
      bounded());
}

/// Words in memory that all PEs see at one address, so that TSan recognizes them.
class OneMapping {
 public:
  OneMapping(std::vector<SyncWord>& told, std::vector<std::uint64_t>& heard, int pes, int me)
      : told_(told), heard_(heard), pes_(pes), me_(me) {}
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] SyncWord& received(int pe, int by) const { return told_[at(pe, by)]; }
  [[nodiscard]] std::uint64_t& awaited(int from) const { return heard_[at(me_, from)]; }

 private:
  [[nodiscard]] std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(pes_) + static_cast<std::size_t>(column);
  }

  std::vector<SyncWord>& told_;
  std::vector<std::uint64_t>& heard_;
  int pes_;
  int me_;
};

TEST(PartialBarriers, MakeEarlierStoresVisible) {
  constexpr int kPes = 5;
  std::vector<SyncWord> told(std::size_t{kPes} * kPes);
  std::vector<std::uint64_t> heard(std::size_t{kPes} * kPes);
  std::array<int, kPes> plain{};
  const shmem::WaitPolicy policy = shmem::wait_policy(kPes);
  std::vector<std::thread> threads;
  threads.reserve(kPes);
  for (int me = 0; me < kPes; ++me) {
    threads.emplace_back([&, me] {
      const OneMapping words(told, heard, kPes, me);
      shmem::Clock::time_point end;  // ends the waits after a failure
      const auto check = [&end] { return shmem::Clock::now() < end ? std::errc{} : std::errc::timed_out; };
      SoloCore core(policy, check);
      int waits_for = -1;
      for (int k = 1; k <= 200; ++k) {
        end = shmem::Clock::now() + std::chrono::seconds{20};
        // Barriers of three PEs, then of all, then of three others.
        for (const std::vector<std::uint32_t>& members :
             {std::vector{0U, 2U, 4U}, {4U, 3U, 2U, 1U, 0U}, {1U, 2U, 3U}}) {
          const auto list =
              PeList::create(me, {0, 1, kPes}, members.data(), static_cast<std::uint32_t>(members.size()));
          if (!list) {
            continue;
          }
          ++plain.at(static_cast<std::size_t>(me));
          ASSERT_EQ(shmem::partial_sync(core, words, *list, waits_for), std::errc{});
          int sum = 0;
          for (const int pe : list->pes()) {
            sum += plain.at(static_cast<std::size_t>(pe));
          }
          EXPECT_GE(sum, k * list->size());
          ASSERT_EQ(shmem::partial_sync(core, words, *list, waits_for), std::errc{});
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(PartialBarriers, UseTheNumbersOfTheTeam) {
  run_job(
      6,
      [&](const Job& job) {
        const TeamMap odd{1, 2, 3};  // PEs 1, 3, 5
        if (job.me == 3 || job.me == 5) {
          const auto list = *list_of(job, {2, 1}, odd);
          EXPECT_EQ(list.pes(), (std::vector{3, 5}));
          EXPECT_EQ(synchronize(job, list), std::errc{});
        }
      },
      bounded());
}

TEST(PartialBarriers, RefuseInvalidLists) {
  run_job(3, [&](const Job& job) {
    if (job.me != 0) {
      return;
    }
    const TeamMap world{0, 1, 3};
    const auto problem = [&](const std::vector<std::uint32_t>& members) {
      const auto list = list_of(job, members, world);
      return list ? "" : list.error().text;
    };
    EXPECT_THAT(problem({}), HasSubstr("NULL"));
    EXPECT_EQ(PeList::create(job.me, world, std::array{0U}.data(), 0).error().text, "the list of PEs is empty");
    EXPECT_EQ(problem({1, 2}), "the list does not name this PE, 0 of the team");
    EXPECT_EQ(problem({0, 2, 2}), "the list names PE 2 of the team twice");
    EXPECT_EQ(problem({0, 3}), "the list names PE 3 of a team of 3");
    EXPECT_EQ(problem({0, 0xffffffffU}), "the list names PE 4294967295 of a team of 3");
    EXPECT_EQ(problem({0, 1, 2, 1}), "the list has 4 PEs, the team 3");
    EXPECT_EQ(problem({0}), "");
  });
}

TEST(PartialBarriers, NameMembersThatUseAnotherList) {
  std::atomic<int> told{0};
  run_job(
      3,
      [&](const Job& job) {
        if (job.me == 2) {
          return;
        }
        const TeamMap world{0, 1, 3};
        std::string text;
        const std::errc error =
            synchronize(job, *list_of(job, job.me == 0 ? std::vector{0U, 1U, 2U} : std::vector{0U, 1U}, world), &text);
        if (error == std::errc::invalid_argument) {
          EXPECT_THAT(text, HasSubstr("arrived at a barrier of another list"));
          ++told;
          job.bootstrap->abort(1, "");  // ends the wait of the other PE
        }
      },
      bounded());
  EXPECT_GE(told.load(), 1);
}

TEST(PartialBarriers, TimeOutAndNameTheMissingMembers) {
  shmem::Options options;
  options.barrier_timeout = std::chrono::milliseconds{50};
  run_job(
      3,
      [&](const Job& job) {
        if (job.me != 1) {
          std::string text;
          EXPECT_EQ(synchronize(job, *list_of(job, {0, 1, 2}, {0, 1, 3}), &text), std::errc::timed_out);
          EXPECT_THAT(text, HasSubstr("timed out after 50 ms (SHMEM_BARRIER_TIMEOUT); it waited for PE "));
        }
      },
      options);
}

TEST(PartialBarriers, NameTheMissingMembersOfALongWait) {
  static std::atomic<int> said;  // static: a log handler has no other argument
  said = 0;
  shmem::set_log_handler([](int /*level*/, const char* text) {
    said +=
        std::string_view(text).find("the barrier of the 2 PEs 0, 1 of the world has taken") != std::string_view::npos &&
                std::string_view(text).find("it waits for PE 1 (pid") != std::string_view::npos
            ? 1
            : 0;
  });
  shmem::Options options = bounded();
  options.barrier_warning = std::chrono::milliseconds{20};
  run_job(
      2,
      [&](const Job& job) {
        const auto end = shmem::Clock::now() + std::chrono::seconds{20};
        while (job.me == 1 && said == 0 && shmem::Clock::now() < end) {
          std::this_thread::yield();
        }
        EXPECT_EQ(synchronize(job, *list_of(job, {0, 1}, {0, 1, 2})), std::errc{});
        EXPECT_GT(said, 0);
      },
      options);
  shmem::set_log_handler(nullptr);
}

TEST(PartialBarriers, EndWhenAPeOfTheListHasDied) {
  const pid_t gone = ::fork();
  if (gone == 0) {
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  run_job(
      3,
      [&](const Job& job) {
        if (job.me == 0) {
          job.metadata(2).pid = gone;
          std::string text;
          EXPECT_EQ(synchronize(job, *list_of(job, {0, 1, 2}, {0, 1, 3}), &text), std::errc::owner_dead);
          EXPECT_THAT(text, HasSubstr("cannot complete: PE 2 (pid " + std::to_string(gone)));
        }
      },
      bounded());
}

TEST(PartialBarriers, EndWhenTheJobDoes) {
  run_job(
      2,
      [&](const Job& job) {
        if (job.me == 0) {
          job.bootstrap->abort(1, "");
        } else {
          EXPECT_EQ(synchronize(job, *list_of(job, {0, 1}, {0, 1, 2})), std::errc::operation_canceled);
        }
      },
      bounded());
}

}  // namespace
