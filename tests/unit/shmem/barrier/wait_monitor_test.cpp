// SPDX-License-Identifier: Apache-2.0
// The PEs that the messages of a barrier name.
#include "shmem/barrier/wait_monitor.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "shmem/layout/peers.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using testing::HasSubstr;

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

}  // namespace
