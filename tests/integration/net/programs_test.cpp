// SPDX-License-Identifier: Apache-2.0
// The programs of other tests, and the examples, on hosts that share only the network: a program need not know where
// its PEs are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <optional>

#include "tests/integration/net/job_on_hosts.hpp"
#include "tests/support/network.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::Hosts;
using test_support::JobOnHosts;
using test_support::Seconds;
using test_support::TempDir;
using test_support::test_program;
using testing::Each;
using testing::HasSubstr;

constexpr Seconds kLimit{240};

struct Program {
  /// The first word: a program in build/tests, or with a slash in the build folder. "FILE" becomes the name of a file
  /// that does not exist yet.
  std::vector<std::string> command;
  const char* says = "";  // what a PE prints
  int status = 0;         // of all PEs
  bool in_ci = true;      // not in soaks alone
  std::size_t pes = 0;    // their number, if the program has a fixed one
  // A PE exits without finalize, which ends a PE that has not left the barrier before yet: with status 1.
  bool ends_others = false;
};

void PrintTo(const Program& program, std::ostream* out) {
  for (const std::string& word : program.command) {
    *out << word << ' ';
  }
}

constexpr bool kInSoak = false;  // too long for CI, or nodes_test.cpp does the same there

std::vector<Program> all_programs() {
  std::vector<Program> all{
      {{"openshmem_conformance_setup_c_pes", "each"}, "", -1},
      {{"openshmem_conformance_setup_c_pes", "busy"}, "output without an end of line", 7},
      {{"openshmem_spec_c_pes", "tolerated"}},
      {{"openshmem_spec_c_pes", "global-exit"}, "not flushed by PE 0", 7},
      {{"spec_wrapper_pes"}, "2 barriers"},
      {{"profiled_c_pes"}, "sum "},
      {{"profiled_linked_c_pes"}, "shmem_long_put 4"},
      {{"profiled_inside_c_pes"}, "shmem_long_put 4"},
      {{"small_collective_pes", "100", "1", "2"}},
      {{"small_collective_pes", "100", "3", "3"}},
      {{"large_collect_pes"}},
      {{"short_of_memory_pes", "scan"}, "bytes in which a scan", 3, true, 0, true},
      {{"api_pes"}, "PE 0 of "},
      {{"c11_pes"}, "c11: 0"},
      {{"whole_life_pes", "20"}, "private kB"},
      {{"many_teams_pes"}, "wrong 0"},
      {{"barrier_pes", "300"}, "early 0,"},
      {{"kernel_pes", "barriers"}, "", 0, kInSoak},
      {{"kernel_pes", "algorithm"}},
      {{"kernel_calls_pes"}},
      {{"wrong_pes", "no-finalize"}},
      {{"wrong_pes", "full-heap"}, "got NULL"},
      {{"wrong_pes", "global-exit"}, "", 9},
      {{"heap_pages_pe", "", ""}},
      {{"globals_pes", "access"}},
      {{"globals_pes", "add"}},
      {{"globals_pes", "again"}},
      {{"globals_pes_fixed", "access"}},
      {{"globals_process_pes", "sparse"}},
      {{"globals_process_pes", "children"}},
      {{"globals_process_pes", "forking-threads", "20"}},
      {{"globals_process_pes", "handlers"}},
      {{"ascend_pes", "FILE"}, "0 failures"},
      {{"ascend_rma_c_pes"}, "", 0, kInSoak},
      {{"ascend_sync_c_pes"}, "", 0, kInSoak},
      {{"ascend_device_pes"}, "", 0, kInSoak},
      {{"ascend_kernel_pes"}, "", 0, kInSoak},
      {{"ascend_allgather_pes", "FILE"}, "", 0, kInSoak},
      {{"ascend_fragments_pes", "nodes"}},
      {{"ascend_kv_shuffle_pes", "FILE", "16", "3", "5", "7"}, "", 0, kInSoak},
      {{"kv_pes", "calls"}, "PE 0: works", 0, true, 2},
      {{"kv_pes", "bad_calls"}, "PE 0: 0 wrong", 0, true, 4},
      {{"kv_pes", "property", "1", "4", "400000"}, "PE 0: right"},
      {{"bin/kv_shuffle", "--check", "--rounds", "2"}, "kv_shuffle: PASS"},
  };
  for (const char* area :
       {"setup", "memory", "teams", "contexts", "rma", "atomics", "collectives", "signals", "waits", "locks"}) {
    all.push_back({{std::string("openshmem_conformance_") + area + "_c_pes"}});
  }
  for (const char* family : {"setup", "team", "rma", "atomic", "wait", "collective", "threads"}) {
    all.push_back({{std::string("openshmem_") + family + "_c_pes"}, "", 0, kInSoak});
  }
  for (const char* family : {"compat", "spec"}) {
    all.push_back({{std::string("openshmem_") + family + "_c_pes", "all"}});
  }
#ifdef EXAMPLES
  for (const std::string example : {"hello", "ring", "heat", "histogram", "transpose", "integer_sort", "work_queue"}) {
    all.push_back({{"examples/" + example}, "correct"});
  }
#endif
  return all;
}

bool soak() {
  return test_support::repeats(0, 1) == 1;
}

/// Those to run: in a soak also the twin of each program in C that is compiled as C++.
std::vector<Program> programs() {
  std::vector<Program> chosen;
  for (const Program& program : all_programs()) {
    if (program.in_ci || soak()) {
      chosen.push_back(program);
    }
    const auto at = program.command[0].find("_c_pes");
    if (at != std::string::npos && soak()) {
      chosen.push_back(program);
      chosen.back().command[0].replace(at, 3, "_cxx_");
    }
  }
  return chosen;
}

using Places = std::vector<int>;

std::vector<Places> all_places() {
  if (!soak()) {
    return {{0, 0, 1, 1}};
  }
  return {{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}, {0, 1, 2}, {0, 0, 1, 1, 2, 2}, {0, 1, 2, 3}};
}

class Programs : public testing::TestWithParam<std::tuple<Program, Places>> {
 protected:
  static void SetUpTestSuite() {
    if (!Hosts::missing()) {
      hosts_.emplace(soak() ? 4 : 2);
    }
  }
  static void TearDownTestSuite() { hosts_.reset(); }
  void SetUp() override {
    if (!hosts_) {
      GTEST_SKIP() << *Hosts::missing();
    }
  }

  static inline std::optional<Hosts> hosts_;
};

TEST_P(Programs, DoTheSameOnSeveralNodes) {
  auto [program, places] = GetParam();
  if (program.command[0] == "large_collect_pes" && test_support::ucx_sends_at_once()) {
    GTEST_SKIP() << "this version of UCX keeps messages that come early in memory of its own";
  }
  const TempDir folder;
  for (std::string& word : program.command) {
    if (word == "FILE") {
      word = folder.file("file");
    }
  }
  std::string& path = program.command[0];
  path = path.find('/') == std::string::npos ? test_program(path) : test_program("../" + path);
  if (program.pes != 0) {
    Places fixed;
    for (std::size_t pe = 0; pe < program.pes; ++pe) {
      fixed.push_back(places[pe * places.size() / program.pes]);
    }
    places = fixed;
  }
  std::vector<JobOnHosts::Environment> own;
  for (std::size_t pe = 0; pe < places.size(); ++pe) {
    own.push_back({"OSHRUN_RANK=" + std::to_string(pe)});  // for programs that look at oshrun's variables
  }
  const std::string size = std::to_string(places.size());
  const JobOnHosts job(
      *hosts_, places, program.command,
      {"SHMEM_SYMMETRIC_SIZE=1G", "OSHRUN_SIZE=" + size, "SHMEM_CYCLE_PROF_PE=" + std::to_string(places.size() - 1)},
      own);
  const auto codes = job.codes(kLimit);
  if (program.ends_others) {
    EXPECT_THAT(codes, testing::Contains(program.status)) << job.output();
    EXPECT_THAT(codes, Each(testing::AnyOf(program.status, 1))) << job.output();
  } else if (program.status >= 0) {
    EXPECT_THAT(codes, Each(program.status)) << job.output();
  } else {
    EXPECT_THAT(codes, Each(testing::AllOf(testing::Ge(10), testing::Lt(20)))) << job.output();  // each its own
  }
  EXPECT_THAT(job.output(), HasSubstr(program.says));
}

std::string name_of(const testing::TestParamInfo<std::tuple<Program, Places>>& test) {
  std::string name = std::to_string(test.index);
  for (const std::string& word : std::get<0>(test.param).command) {
    name += "_" + word;
  }
  name += "_on";
  for (const int host : std::get<1>(test.param)) {
    name += "_" + std::to_string(host);
  }
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Programs,
                         testing::Combine(testing::ValuesIn(programs()), testing::ValuesIn(all_places())), name_of);

}  // namespace
