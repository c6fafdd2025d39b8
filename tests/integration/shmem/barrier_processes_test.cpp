// SPDX-License-Identifier: Apache-2.0
// Every barrier algorithm on PEs that are processes, in real node memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shmem/bootstrap/local.hpp"
#include "shmem/layout/sync_view.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/barrier_threads.hpp"
#include "tests/unit/shmem/bootstrap_processes.hpp"

namespace {

using namespace test_support;

using shmem::Job;
using shmem_test::BarrierRun;
using shmem_test::Cell;
using shmem_test::Cells;

/// Checks one run on this PE. Its first barrier is the one after `before`.
std::string check_run(const Job& job, const BarrierRun& run) {
  const Cells cells({reinterpret_cast<Cell*>(job.memory.heap(0)), Cells::needed(run)}, run);
  shmem_test::FirstWrong wrong([&job] { return job.bootstrap->aborted().has_value(); });
  check_pe(shmem::SyncView(job, shmem::TeamMap{0, 1, run.pes}, 0), run, cells, wrong);
  return wrong.text().empty() ? "" : to_string(run) + ": " + wrong.text();
}

/// All algorithms one after the other, then mixed, by the same team.
std::string check_all(const Job& job, const std::vector<int>& core_counts, int barriers) {
  BarrierRun run{.pes = job.size};
  for (std::size_t i = 0; i <= shmem::kAlgorithms.size(); ++i) {
    run.algorithm = shmem_test::algorithm_or_mixed(i);
    for (const int cores : core_counts) {
      run.cores = cores;
      run.barriers = barriers / static_cast<int>(core_counts.size());
      if (std::string text = check_run(job, run); !text.empty()) {
        return text;
      }
      run.before += static_cast<std::uint64_t>(run.barriers);
    }
  }
  return "";
}

std::vector<std::string> in_job(int pes, const std::vector<int>& core_counts, int barriers) {
  const auto shared = std::make_shared<const shmem::JobMemory>(shmem::JobMemory::create(pes).value());
  return shmem::testing::in_processes(
      pes,
      [&](int pe) -> std::string {
        std::unique_ptr<shmem::Bootstrap> bootstrap = shmem::LocalBootstrap::join(shared, pe).value();
        auto memory = shmem::NodeMemory::create(*bootstrap, std::size_t{4} << 20);
        if (!memory) {
          return memory.error().text;
        }
        const Job job{{}, std::move(bootstrap), *std::move(memory), pe, pes, shmem::wait_policy(pes)};
        std::string text = check_all(job, core_counts, barriers);
        if (!text.empty()) {
          job.bootstrap->abort(1, text);
        }
        return text;
      },
      std::chrono::seconds{repeats(600, 3600)});
}

class BarrierProcesses : public testing::TestWithParam<int> {};

TEST_P(BarrierProcesses, LetNoMemberLeaveBeforeAllHaveEntered) {
  const int pes = GetParam();
  const std::vector<int> cores = pes <= 17 ? std::vector{1, 1, 2, 3} : std::vector{1};
  EXPECT_THAT(in_job(pes, cores, shmem_test::barriers_for(pes)), testing::Each(testing::IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Pes, BarrierProcesses, testing::ValuesIn(shmem_test::kTeamSizes),
                         testing::PrintToStringParamName());

}  // namespace
