// SPDX-License-Identifier: Apache-2.0
// Memory that a program has already, as symmetric memory: on one node and on several.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/job.hpp"

namespace {

using test_support::oshrun;
using test_support::Outcome;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

bool has_network() {
#ifdef SHMEM_HAS_UCX
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) {
    dlclose(library);
  }
  return library != nullptr;
#else
  return false;
#endif
}

Outcome job(int pes, const char* program, std::vector<std::string> arguments,
            const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), test_program(program));
  return run(oshrun(pes, "off", arguments), environment, Seconds{60});
}

/// A node for every `pes_a_node` PEs.
Outcome job_on_nodes(int pes, int pes_a_node, const std::string& kind) {
  const std::string line =
      "export SHMEM_HOST_ID=node$((OSHRUN_RANK / " + std::to_string(pes_a_node) + R"()); exec "$0" "$@")";
  return run(oshrun(pes, "off", {"sh", "-c", line, test_program("registered_pes"), kind, "nodes"}), {}, Seconds{60});
}

class Registered : public testing::TestWithParam<const char*> {};

TEST_P(Registered, IsUsedLikeTheSymmetricHeap) {
  const auto done = job(3, "registered_pes", {GetParam()});
  EXPECT_TRUE(done.exit.clean()) << done.output;
}

TEST_P(Registered, IsReachedFromOtherNodes) {
  if (!has_network()) {
    GTEST_SKIP() << "libshmem was built without UCX, or it is not installed";
  }
  const auto done = job_on_nodes(4, 2, GetParam());
  EXPECT_TRUE(done.exit.clean()) << done.output;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Registered, testing::Values("given", "found", "named", "private", "mixed", "last"),
                         [](const auto& test) { return std::string(test.param); });

TEST(RegisteredMemory, OfOnePeIsItsOwn) {
  for (const char* kind : {"given", "private"}) {
    const auto done = job(1, "registered_pes", {kind});
    EXPECT_TRUE(done.exit.clean()) << done.output;
  }
}

TEST(RegisteredMemory, PassesTheChecksOfArguments) {
  for (const char* kind : {"given", "mixed"}) {
    const auto done = job(2, "registered_pes", {kind}, {"SHMEM_DEBUG=1"});
    EXPECT_TRUE(done.exit.clean()) << done.output;
  }
}

TEST(RegisteredMemory, ThatIsPrivateHasItsWordsChangedFromOtherNodes) {
  if (!has_network()) {
    GTEST_SKIP() << "libshmem was built without UCX, or it is not installed";
  }
  for (const char* kind : {"private", "mixed"}) {
    const auto done = job_on_nodes(2, 1, kind);
    EXPECT_TRUE(done.exit.clean()) << done.output;
  }
}

TEST(RegisteredMemory, WhichIsWrongIsAnErrorOnAllPes) {
  const auto done = job(3, "registered_bad_pes", {"refuse"});
  EXPECT_TRUE(done.exit.clean()) << done.output;
}

TEST(RegisteredMemory, LeavesNothing) {
  const auto done = job(2, "registered_bad_pes", {"repeat"});
  EXPECT_TRUE(done.exit.clean()) << done.output;
}

TEST(RegisteredMemory, OfAPeThatDiesIsAnErrorOfTheOthers) {
  for (int i = 0; i < 4; ++i) {
    const auto done = job(4, "registered_bad_pes", {"die", std::to_string(1100 * i)});
    EXPECT_EQ(done.exit.code, 0) << done.output;
    EXPECT_EQ(done.exit.signal, 0) << done.output;
    for (const int pe : {0, 2, 3}) {
      EXPECT_NE(done.output.find("PE " + std::to_string(pe) + " ends: shmem: "), std::string::npos) << done.output;
    }
  }
}

}  // namespace
