// SPDX-License-Identifier: Apache-2.0
// The PEs that the messages of a barrier name.
#include "shmem/barrier/wait_monitor.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "shmem/barrier/active_set.hpp"
#include "shmem/layout/leave.hpp"
#include "shmem/layout/peers.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using testing::HasSubstr;
using testing::Not;

/// A stopped process, which stands for a PE.
class StoppedProcess {
 public:
  StoppedProcess() : pid_(::fork()) {
    if (pid_ == 0) {
      ::raise(SIGSTOP);
      ::_exit(0);
    }
    EXPECT_EQ(::waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  ~StoppedProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(BarrierMonitor, NamesAMemberThatIsStoppedBeforeItReleasesTheOthers) {
  const StoppedProcess process;
  shmem_test::run_job(2, [&](Job& job) {
    shmem::introduce(job);
    if (job.me == 1) {
      job.metadata(1).pid.store(process.pid(), std::memory_order_relaxed);
      job.metadata(1).process_start.store(0, std::memory_order_relaxed);
    }
    const shmem::TeamMap map{.start = 0, .stride = 1, .size = 2};
    const shmem::SyncView view(job, map, 0);
    view.mine().entered.store(1, std::memory_order_relaxed);
    ASSERT_TRUE(job.bootstrap->barrier());
    const shmem::BarrierMonitor monitor(job, map, view, {.count = 1, .team = 0, .algorithm = "central_counter"});
    const std::string text = monitor.explain(std::errc::timed_out);
    EXPECT_THAT(text, HasSubstr("it waited for PEs that have arrived and do not go on: PE 1 (pid " +
                                std::to_string(process.pid())));
    EXPECT_THAT(text, HasSubstr(", stopped)"));
    ASSERT_TRUE(job.bootstrap->barrier());
    view.mine().left.store(1, std::memory_order_relaxed);
    ASSERT_TRUE(job.bootstrap->barrier());
    EXPECT_THAT(monitor.explain(std::errc::timed_out), HasSubstr("it waited for no PE: all have arrived"));
  });
}

TEST(ActiveSetMonitor, FindsThePeThatKeepsTheOthersWaiting) {
  shmem_test::run_job(5, [](Job& job) {
    shmem::introduce(job);
    auto* words = reinterpret_cast<long*>(job.memory.heap(job.me));
    std::fill_n(words, shmem::kActiveSetProgress + 1, 0);
    const auto enters_round = [&](long round) { words[shmem::kActiveSetProgress] = round + 1; };
    const shmem::TeamMap set{.start = 0, .stride = 1, .size = 5};
    // PE 0 waits for PE 3, which waits for PE 1.
    if (job.me == 0) {
      enters_round(1);
    } else if (job.me == 3) {
      enters_round(1);
    } else if (job.me == 1) {
      words[0] = 1;  // what it waits for
      enters_round(0);
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    const shmem::ActiveSetMonitor monitor(job, set, words, {.call = "shmem_sync", .start = 0, .stride = 1});
    if (job.me == 0) {
      const std::string text = monitor.explain(std::errc::timed_out);
      EXPECT_THAT(text, HasSubstr("the wait for the 5 PEs from PE 0 on with stride 1 timed out"));
      EXPECT_THAT(text, HasSubstr("it waited for PE 1 (pid "));
      EXPECT_THAT(text, HasSubstr(", which has arrived and does not go on"));
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 1) {
      words[0] = 0;
      words[shmem::kActiveSetProgress] = 0;
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      const std::string text = monitor.explain(std::errc::timed_out);
      EXPECT_THAT(text, HasSubstr("it waited for PE 1 (pid "));
      EXPECT_THAT(text, HasSubstr("), PE 2 (pid "));
      EXPECT_THAT(text, HasSubstr("), PE 4 (pid "));
      EXPECT_THAT(text, Not(HasSubstr("PE 3 (pid ")));
    }
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

TEST(ActiveSetMonitor, EndsTheWaitForAPeThatHasDied) {
  pid_t dead = ::fork();
  if (dead == 0) {
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  shmem_test::run_job(2, [dead](Job& job) {
    shmem::introduce(job);
    auto* words = reinterpret_cast<long*>(job.memory.heap(job.me));
    std::fill_n(words, shmem::kActiveSetProgress + 1, 0);
    if (job.me == 1) {
      job.metadata(1).pid.store(dead, std::memory_order_relaxed);
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      const shmem::TeamMap set{.start = 0, .stride = 1, .size = 2};
      shmem::ActiveSetMonitor monitor(job, set, words, {.call = "shmem_sync", .start = 0, .stride = 1});
      const auto error = shmem::active_set_sync(job, set, words, [&monitor] { return monitor(); });
      EXPECT_EQ(error, std::errc::owner_dead);
      EXPECT_THAT(monitor.explain(error), HasSubstr("cannot complete: a PE has ended; it waited for PE 1 (pid "));
    }
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

/// As that of a PE of oshrun.
class ToldBootstrap final : public shmem::Bootstrap {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 2; }
  shmem::Result<std::vector<std::byte>> allgather(std::span<const std::byte> /*mine*/) override {
    return std::vector<std::byte>();
  }
  int abort(int status, const std::string& /*reason*/) override { return status; }
  [[nodiscard]] std::optional<std::string> aborted() const override { return std::nullopt; }
  [[nodiscard]] bool has_launcher_that_tells() const override { return true; }
  void leave() override {}
};

/// The first looks of a wait would overtake a launcher that has no processor at the moment.
TEST(WaitMonitor, LeavesALauncherTimeToTellOfAnEnd) {
  shmem_test::run_job(2, [](Job& job) {
    shmem::introduce(job);
    std::fill_n(reinterpret_cast<long*>(job.memory.heap(job.me)), shmem::kActiveSetProgress + 1, 0);
    if (job.me == 1) {
      shmem::leave(job);
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      ASSERT_TRUE(shmem::is_dead(job, 1));
      job.bootstrap = std::make_unique<ToldBootstrap>();
      auto* words = reinterpret_cast<long*>(job.memory.heap(0));
      const shmem::TeamMap set{.start = 0, .stride = 1, .size = 2};
      shmem::ActiveSetMonitor monitor(job, set, words, {.call = "shmem_sync", .start = 0, .stride = 1});
      const auto begin = std::chrono::steady_clock::now();
      const auto error = shmem::active_set_sync(job, set, words, [&monitor] { return monitor(); });
      EXPECT_EQ(error, std::errc::owner_dead);
      EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds{499});
    }
  });
}

}  // namespace
