// SPDX-License-Identifier: Apache-2.0
// A team whose members time out soon.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace shmem_test {

/// Runs `body` once per PE, with a team of all PEs whose timeout is 50 ms.
inline void run_team_with_short_limit(int size, const std::function<void(shmem::Job&, shmem::Team&)>& body) {
  shmem::Options options;
  options.barrier_timeout = std::chrono::milliseconds{50};
  run_job(
      size,
      [&](shmem::Job& job) {
        job.metadata(job.me).pid = ::getpid();
        ASSERT_TRUE(job.bootstrap->barrier());
        shmem::LocalTeam team(job, shmem::TeamMap{0, 1, size}, 0, 0);
        body(job, team);
      },
      options);
}

}  // namespace shmem_test
