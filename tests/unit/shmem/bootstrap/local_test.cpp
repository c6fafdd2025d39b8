// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/local.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <latch>
#include <thread>

#include "base/memfd.hpp"
#include "base/process_activity.hpp"
#include "shmem/bootstrap/allgather.hpp"
#include "tests/unit/shmem/bootstrap_processes.hpp"
#include "tests/unit/shmem/text_of.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::in_processes;
using ::testing::IsEmpty;
using testing::text_of;

std::shared_ptr<const JobMemory> make_job(int pes) {
  return std::make_shared<const JobMemory>(JobMemory::create(pes).value());
}

/// The bytes that PE `pe` contributes to call `call`. They differ with the PE, the call and the position.
std::vector<std::byte> bytes_of(int pe, int call, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i + static_cast<std::size_t>(pe * 7 + call));
  }
  return bytes;
}

/// "" if allgather() gives the bytes of all PEs in rank order.
std::string gather(Bootstrap& bootstrap, int call, std::size_t size) {
  const auto all = bootstrap.allgather(bytes_of(bootstrap.rank(), call, size));
  if (!all) {
    return all.error().text;
  }
  std::vector<std::byte> expected;
  for (int pe = 0; pe < bootstrap.size(); ++pe) {
    const auto part = bytes_of(pe, call, size);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  return *all == expected ? "" : "wrong bytes in call " + std::to_string(call);
}

TEST(LocalBootstrap, KnowsItsRankAndSize) {
  const auto bootstrap = LocalBootstrap::join(make_job(5), 3);
  ASSERT_TRUE(bootstrap);
  EXPECT_EQ((*bootstrap)->rank(), 3);
  EXPECT_EQ((*bootstrap)->size(), 5);
  EXPECT_FALSE((*bootstrap)->aborted());
}

TEST(LocalBootstrap, GathersTheBytesOfAllPesInRankOrder) {
  const auto job = make_job(8);
  const auto texts = in_processes(8, [&](int pe) {
    auto bootstrap = LocalBootstrap::join(job, pe).value();
    std::string text;
    int call = 0;
    for (const std::size_t size : {1U, 8U, 503U, 504U, 505U, 0U, 5000U}) {
      text += gather(*bootstrap, ++call, size);
    }
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST(LocalBootstrap, LetsNoPeLeaveABarrierBeforeAllHaveEntered) {
  constexpr int kPes = 4;
  constexpr int kRounds = 500;
  const auto shared = base::Mapping::share(base::create_memfd("test", 4096).value().get(), 4096).value();
  auto& entered = *reinterpret_cast<std::atomic<int>*>(shared.data());
  const auto job = make_job(kPes);
  const auto texts = in_processes(kPes, [&](int pe) -> std::string {
    auto bootstrap = LocalBootstrap::join(job, pe).value();
    for (int round = 1; round <= kRounds; ++round) {
      entered.fetch_add(1);
      if (auto met = bootstrap->barrier(); !met) {
        return met.error().text;
      }
      if (entered.load() < round * kPes) {
        return "left barrier " + std::to_string(round) + " early";
      }
    }
    return "";
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST(LocalBootstrap, OrdersMemoryBetweenThreads) {  // for ThreadSanitizer: all threads use one mapping
  constexpr int kPes = 3;
  const auto job = make_job(kPes);
  std::array<std::string, kPes> texts;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(kPes));
  for (int pe = 0; pe < kPes; ++pe) {
    threads.emplace_back([&, pe] {
      auto bootstrap = LocalBootstrap::join(job, pe).value();
      for (int call = 0; call < 50; ++call) {
        texts[static_cast<std::size_t>(pe)] += gather(*bootstrap, call, 700);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST(LocalBootstrap, NamesPesThatDoNotComeInTime) {
  const auto job = make_job(6);
  const auto texts = in_processes(6, [&](int pe) -> std::string {
    if (pe != 0 && pe != 4) {
      return "";
    }
    auto bootstrap = LocalBootstrap::join(job, pe, milliseconds{150}).value();
    while (pe == 0 && job->slot(4).round == 0) {
      std::this_thread::sleep_for(milliseconds{1});
    }
    return text_of(bootstrap->barrier());
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("PE 0 waited 0.150 s for PEs 1-3, 5"), HasSubstr("step 1")));
}

TEST(LocalBootstrap, StaysFailedOnceAStepHasFailed) {
  const auto job = make_job(2);
  auto bootstrap = LocalBootstrap::join(job, 0, milliseconds{10}).value();
  const std::string first = text_of(bootstrap->barrier());
  EXPECT_EQ(text_of(bootstrap->barrier()), first);
  bootstrap->leave();
  const auto again = LocalBootstrap::join(job, 0);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().text, HasSubstr("gave up in the middle of an earlier step"));
}

TEST(LocalBootstrap, EndsWaitsWhenTheJobIsAborted) {
  const auto job = make_job(3);
  const auto texts = in_processes(3, [&](int pe) -> std::string {
    auto bootstrap = LocalBootstrap::join(job, pe).value();
    if (pe != 2) {
      return text_of(bootstrap->barrier());
    }
    const int first = bootstrap->abort(5, "out of patience");
    return first == 5 && bootstrap->abort(6, "a second reason") == 5 ? "" : "not the status of the first call";
  });
  EXPECT_EQ(texts[0], "shmem: PE 0: the job was ended: out of patience");
  EXPECT_EQ(texts[1], "shmem: PE 1: the job was ended: out of patience");
  EXPECT_EQ(texts[2], "");
  const auto end = job->ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->pe, 2);
  EXPECT_EQ(end->status, 5);
  EXPECT_EQ(end->reason, "out of patience");
}

TEST(LocalBootstrap, KeepsTheBeginningOfALongReason) {
  const auto job = make_job(1);
  auto bootstrap = LocalBootstrap::join(job, 0).value();
  bootstrap->abort(1, std::string(10000, 'x'));
  EXPECT_EQ(bootstrap->aborted(), std::string(499, 'x'));
}

TEST(LocalBootstrap, DoesNotWaitForDeadPes) {
  const auto job = make_job(3);
  job->slot(1).exited.store(1);
  const auto texts = in_processes(3, [&](int pe) -> std::string {
    if (pe == 1) {
      return "";
    }
    return text_of(LocalBootstrap::join(job, pe).value()->barrier());
  });
  EXPECT_THAT(texts[0], HasSubstr("PE 0 waits for PE 1: exited with status 0"));
  EXPECT_THAT(texts[2], HasSubstr("PE 2 waits for PE 1: exited with status 0"));
}

TEST(LocalBootstrap, FinishesAStepWhoseMembersHaveDiedSince) {
  const auto job = make_job(2);
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    auto bootstrap = LocalBootstrap::join(job, pe).value();
    const auto met = bootstrap->barrier();
    job->slot(pe).exited.store(1);
    return met ? "" : met.error().text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST(LocalBootstrap, ReportsPesInDifferentSteps) {
  const auto job = make_job(2);
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    auto bootstrap = LocalBootstrap::join(job, pe).value();
    const std::vector<std::byte> mine(pe == 0 ? 8 : 16);
    const auto all = bootstrap->allgather(mine);
    return all ? "went well" : all.error().text;
  });
  EXPECT_THAT(texts[0], HasSubstr("PE 0 sends 8 bytes, PE 1 sends 16"));
  EXPECT_THAT(texts[1], HasSubstr("PE 1 sends 16 bytes, PE 0 sends 8"));
}

TEST(LocalBootstrap, CanBeLeftAndJoinedAgain) {
  const auto job = make_job(3);
  const auto texts = in_processes(3, [&](int pe) {
    std::string text;
    for (int time = 0; time < 5; ++time) {
      auto bootstrap = LocalBootstrap::join(job, pe).value();
      text += gather(*bootstrap, time, 600);
      bootstrap->leave();
    }
    return text;
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
  EXPECT_EQ(job->slot(0).state.load(), PeState::kLeft);
}

TEST(LocalBootstrap, RefusesASecondProcessForAPe) {
  const auto job = make_job(2);
  const auto first = LocalBootstrap::join(job, 1).value();
  const auto texts = in_processes(1, [&](int) -> std::string {
    const auto second = LocalBootstrap::join(job, 1);
    return second ? "joined" : second.error().text;
  });
  EXPECT_THAT(texts[0], HasSubstr("PE 1 is process " + std::to_string(::getpid()) + " already"));
}

TEST(LocalBootstrap, TakesThePlaceOfADeadProcess) {
  const auto job = make_job(1);
  in_processes(1, [&](int) {
    const auto never_left = LocalBootstrap::join(job, 0).value();
    return std::string();
  });
  EXPECT_TRUE(LocalBootstrap::join(job, 0));
}

TEST(LocalBootstrap, TakesThePlaceOfADeadProcessWhoseNumberAnotherOneHas) {
  const auto job = make_job(1);
  in_processes(1, [&](int) {
    const auto never_left = LocalBootstrap::join(job, 0).value();
    return std::string();
  });
  const pid_t other = ::getppid();
  job->slot(0).owner = other;
  job->slot(0).start = base::start_of(other);
  EXPECT_FALSE(LocalBootstrap::join(job, 0));
  --job->slot(0).start;
  EXPECT_TRUE(LocalBootstrap::join(job, 0));
  EXPECT_EQ(job->slot(0).start, base::start_of(::getpid()));
}

TEST(LocalBootstrap, AProcessThatWasLeftOutKeepsItsPlaceWhileItLives) {
  const auto job = make_job(2);
  const auto first = LocalBootstrap::join(job, 0).value();
  const auto second = LocalBootstrap::join(job, 1).value();
  const pid_t self = ::getpid();
  first->leave_out(1, self + 1);
  EXPECT_EQ(job->slot(1).owner.load(), self) << "it has taken the place of the one that was left out";
  first->leave_out(1, self);
  EXPECT_EQ(job->slot(1).owner.load(), -self);
  const auto texts = in_processes(1, [&](int) -> std::string {
    const auto third = LocalBootstrap::join(job, 1);
    return third ? "joined" : third.error().text;
  });
  EXPECT_THAT(texts[0], HasSubstr("PE 1 is process " + std::to_string(self) + " already"));
}

// A PE that is bound to one processor of many sees only that one. It must not conclude that all PEs share it.
TEST(JobMemory, TellsPesHowManyProcessorsTheyHaveTogether) {
  const auto job = std::make_shared<const JobMemory>(JobMemory::create(2, 8).value());
  EXPECT_EQ(JobMemory::attach(job->fd(), 2).value().header().processors, 8);
  EXPECT_GT(wait_policy(8, 8).spins, 0U);
  EXPECT_EQ(wait_policy(9, 8).spins, 0U);
  EXPECT_EQ(wait_policy(1 << 20).spins, 0U) << "more PEs than processors that this process may use";
}

/// All PEs report the status and the reason of the first abort, also one that looks while they are being written.
TEST(JobMemory, WaitsWhileTheReasonIsBeingWritten) {
  const auto job = make_job(1);
  JobEndWord& word = job->header().end;
  word.state.store(JobEndWord::kWriting);
  std::latch begun(2);
  std::jthread writer([&] {
    begun.arrive_and_wait();
    std::this_thread::sleep_for(milliseconds{250});
    word.pe = 0;
    word.status = 3;
    word.reason[0] = 'x';
    word.state.store(JobEndWord::kSet);
  });
  begun.arrive_and_wait();
  const auto end = job->ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, 3);
  EXPECT_EQ(end->reason, "x");
}

TEST(JobMemory, HasEndedEvenIfThePeWasKilledWhileItWroteTheReason) {
  const auto job = make_job(1);
  job->header().end.state.store(JobEndWord::kWriting);
  const auto end = job->ended();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, 1);
  EXPECT_EQ(end->reason, "the job is being ended");
}

TEST(JobMemory, RefusesOtherDescriptors) {
  const auto job = make_job(2);
  EXPECT_TRUE(JobMemory::attach(job->fd(), 2));

  const auto text_of_attach = [](int fd, int pes) {
    const auto attached = JobMemory::attach(fd, pes);
    return attached ? std::string("attached") : attached.error().text;
  };
  EXPECT_THAT(text_of_attach(job->fd(), 1), HasSubstr("for 2 PEs, not 1"));
  EXPECT_THAT(text_of_attach(job->fd(), 3), HasSubstr("instead of"));
  EXPECT_THAT(text_of_attach(99999, 2), HasSubstr("Bad file descriptor"));

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const base::UniqueFd read(ends[0]);
  const base::UniqueFd write(ends[1]);
  EXPECT_THAT(text_of_attach(read.get(), 2), HasSubstr("not a sealed memfd"));

  const base::UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_THAT(text_of_attach(unsealed.get(), 2), HasSubstr("not a sealed memfd"));
  const auto foreign = base::create_memfd("test", 1 << 20).value();
  EXPECT_THAT(text_of_attach(foreign.get(), 2), HasSubstr("not the memory of a job"));

  job->header().version = kJobVersion + 1;
  EXPECT_THAT(text_of_attach(job->fd(), 2), HasSubstr("oshrun speaks version 5, this libshmem version 4"));
}

}  // namespace
}  // namespace shmem
