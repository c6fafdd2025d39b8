// SPDX-License-Identifier: Apache-2.0
// The programs of other tests, and the examples, on hosts that share only the network: a program need not know where
// its PEs are.
#include <cctype>
#include <optional>

#include "tests/integration/net/job_on_hosts.hpp"
#include "tests/support/network.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{600};

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
      {{"openshmem_c_pes", "conformance_setup", "each"}, "", -1},
      {{"openshmem_c_pes", "conformance_setup", "busy"}, "output without an end of line", 7},
      {{"openshmem_c_pes", "spec", "tolerated"}},
      {{"openshmem_c_pes", "spec", "global-exit"}, "not flushed by PE 0", 7},
      {{"spec_wrapper_pes"}, "2 barriers"},
      {{"profiled_c_pes"}, "sum "},
      {{"profiled_linked_c_pes"}, "shmem_long_put 4"},
      {{"profiled_inside_c_pes"}, "shmem_long_put 4"},
      {{"small_collective_pes", "100", "1", "2"}},
      {{"small_collective_pes", "100", "3", "3"}},
      {{"shmem_pes", "large_collect"}},
      {{"short_of_memory_pes", "scan"}, "bytes in which a scan", 3, true, 0, true},
      {{"shmem_pes", "api"}, "PE 0 of "},
      {{"openshmem_c_pes", "c11"}, "c11: 0"},
      {{"shmem_pes", "whole_life", "20"}, "private kB"},
      {{"shmem_pes", "many_teams"}, "wrong 0"},
      {{"barrier_pes", "300"}, "early 0,"},
      {{"shmem_pes", "kernel", "barriers"}, "", 0, kInSoak},
      {{"shmem_pes", "kernel", "algorithm"}},
      {{"shmem_pes", "kernel_calls"}},
      {{"shmem_pes", "wrong", "no-finalize"}},
      {{"shmem_pes", "wrong", "full-heap"}, "got NULL"},
      {{"shmem_pes", "wrong", "global-exit"}, "", 9},
      {{"shmem_pes", "heap_pages", "", ""}},
      {{"globals_pes", "access"}},
      {{"globals_pes", "add"}},
      {{"globals_pes", "again"}},
      {{"globals_pes_fixed", "access"}},
      {{"globals_process_pes", "sparse"}},
      {{"globals_process_pes", "children"}},
      {{"globals_process_pes", "forking-threads", "20"}},
      {{"globals_process_pes", "handlers"}},
      {{"ascend_cxx_pes", "host", "FILE"}, "0 failures"},
      {{"ascend_c_pes", "rma"}, "", 0, kInSoak},
      {{"ascend_c_pes", "sync"}, "", 0, kInSoak},
      {{"ascend_cxx_pes", "device"}, "", 0, kInSoak},
      {{"ascend_cxx_pes", "kernel"}, "", 0, kInSoak},
      {{"ascend_cxx_pes", "engines"}},
      {{"ascend_cxx_pes", "simt"}, "", 0, kInSoak},
      {{"ascend_cxx_pes", "allgather", "FILE"}, "", 0, kInSoak},
      {{"ascend_cxx_pes", "fragments", "nodes"}},
      {{"ascend_cxx_pes", "kv_shuffle", "FILE", "16", "3", "5", "7"}, "", 0, kInSoak},
      {{"kv_pes", "calls"}, "PE 0: works", 0, true, 2},
      {{"kv_pes", "bad_calls"}, "PE 0: 0 wrong", 0, true, 4},
      {{"kv_pes", "property", "1", "4", "400000"}, "PE 0: right"},
      {{"bin/kv_shuffle", "--check", "--rounds", "2"}, "kv_shuffle: PASS"},
  };
  for (const char* area :
       {"setup", "memory", "teams", "contexts", "rma", "atomics", "collectives", "signals", "waits", "locks"}) {
    all.push_back({{"openshmem_c_pes", std::string("conformance_") + area}});
  }
  for (const char* family : {"setup", "team", "rma", "atomic", "wait", "collective", "threads"}) {
    all.push_back({{"openshmem_c_pes", family}, "", 0, kInSoak});
  }
  for (const char* family : {"compat", "spec"}) {
    all.push_back({{"openshmem_c_pes", family, "all"}});
  }
#ifdef EXAMPLES
  for (const std::string example : {"hello", "ring", "heat", "histogram", "transpose", "integer_sort", "work_queue"}) {
    all.push_back({{"examples/" + example}, "correct"});
  }
#endif
  return all;
}

bool soak() {
  return repeats(0, 1) == 1;
}

/// Those to run: in a soak also the twin of each program in C that is compiled as C++.
std::vector<Program> programs() {
  std::vector<Program> chosen;
  for (const Program& program : all_programs()) {
    if (program.in_ci || soak()) {
      chosen.push_back(program);
    }
    const auto at = program.command[0].find("_c_pes");
    if (at != std::string::npos && program.command.back() != "c11" && soak()) {
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
  if (program.command.back() == "large_collect" && ucx_sends_at_once()) {
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
    EXPECT_THAT(codes, Contains(program.status)) << job.output();
    EXPECT_THAT(codes, Each(AnyOf(program.status, 1))) << job.output();
  } else if (program.status >= 0) {
    EXPECT_THAT(codes, Each(program.status)) << job.output();
  } else {
    EXPECT_THAT(codes, Each(AllOf(Ge(10), Lt(20)))) << job.output();  // each its own
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

INSTANTIATE_TEST_SUITE_P(All, Programs, Combine(ValuesIn(programs()), ValuesIn(all_places())), name_of);

}  // namespace
