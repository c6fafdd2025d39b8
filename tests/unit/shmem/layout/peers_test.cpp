// SPDX-License-Identifier: Apache-2.0
// Whether the process of a PE is alive, as another PE sees it.
#include "shmem/layout/peers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "shmem/layout/leave.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::is_dead;
using shmem::is_dead_or_zombie;
using shmem::Job;
using shmem_test::run_job;

constexpr int kNoProcess = (1 << 22) + 1;  // larger than any number that Linux uses

/// PE 1 changes what it says of itself; `check` runs on PE 0.
void look_at(const std::function<void(shmem::PeMetadata&)>& change, const std::function<void(const Job&)>& check) {
  run_job(2, [&](Job& job) {
    shmem::introduce(job);
    if (job.me == 1) {
      change(job.metadata(1));
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      check(job);
    }
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

TEST(Peers, AreAliveUntilTheirProcessEnds) {
  look_at([](shmem::PeMetadata& /*mine*/) {}, [](const Job& job) { EXPECT_FALSE(is_dead_or_zombie(job, 1)); });
  look_at([](shmem::PeMetadata& mine) { mine.pid = kNoProcess; },
          [](const Job& job) {
            EXPECT_TRUE(is_dead(job, 1));
            EXPECT_TRUE(is_dead_or_zombie(job, 1));
          });
}

TEST(Peers, AreDeadIfAnotherProcessHasTheirNumber) {
  look_at([](shmem::PeMetadata& mine) { mine.process_start -= 1; },
          [](const Job& job) { EXPECT_TRUE(is_dead_or_zombie(job, 1)); });
}

TEST(Peers, AreNotTakenForDeadIfTheirStartIsUnknown) {
  look_at([](shmem::PeMetadata& mine) { mine.process_start = 0; },
          [](const Job& job) { EXPECT_FALSE(is_dead_or_zombie(job, 1)); });
}

// Without /proc no PE knows its name space, and all seem to be in one.
TEST(Peers, AreNotTakenForDeadIfTheirNameSpaceIsUnknown) {
  run_job(2, [&](Job& job) {
    shmem::introduce(job);
    job.metadata(job.me).process_space = 0;
    if (job.me == 1) {
      job.metadata(1).pid = kNoProcess;
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    EXPECT_FALSE(is_dead_or_zombie(job, 1));
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

// PE 2 has died, PE 1 has noticed, said so and left, and PE 0 notices both at once.
TEST(Peers, ThatHaveLeftBecauseOfAnotherAreNotTheReason) {
  run_job(3, [](Job& job) {
    shmem::introduce(job);
    ASSERT_TRUE(job.bootstrap->barrier());
    EXPECT_EQ(shmem::why_in_vain(job), std::nullopt);
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 2) {
      job.metadata(2).pid = kNoProcess;
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    const std::string why = shmem::why_in_vain(job).value_or("nothing");
    EXPECT_TRUE(job.me == 2 || why.find("waited for PE 2 (pid ") != std::string::npos) << why;
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 1) {
      job.bootstrap->abort(1, "PE 2 is gone");
      shmem::leave(job);
    }
    while (job.me == 0 && !is_dead(job, 1)) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(job.me != 0 || shmem::why_in_vain(job) == "the test ended it");
  });
}

}  // namespace
