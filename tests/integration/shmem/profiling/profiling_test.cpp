// SPDX-License-Identifier: Apache-2.0
// A profiling library between a program and libshmem: preloaded, linked, and as a part of the program.
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

/// The calls of the program: calls that the library makes itself are not counted.
const auto kCounted = AllOf(HasSubstr("PE 0: shmem_malloc 2, shmem_barrier_all 3, shmem_long_put 4\n"),
                            HasSubstr("PE 1: shmem_malloc 2, shmem_barrier_all 3, shmem_long_put 4\n"));
/// Each PE gets 4 longs from its left neighbour, one of which comes back.
const auto kRight = HasSubstr("sum 12\n");

class Profiling : public testing::TestWithParam<const char*> {
 protected:
  static std::string job(const std::string& how, const std::vector<std::string>& environment = {}) {
    const auto job = run(oshrun(2, "off", {test_program("profiled_" + how + GetParam() + "_pes")}), environment);
    EXPECT_TRUE(job.exit.clean()) << job.output;
    return job.output;
  }
};

TEST_P(Profiling, IsOffByDefault) {
  EXPECT_THAT(job(""), AllOf(kRight, Not(HasSubstr("shmem_malloc"))));
}

TEST_P(Profiling, WorksPreloaded) {
  EXPECT_THAT(job("", {"LD_PRELOAD=" COUNT_CALLS_LIBRARY}), AllOf(kRight, kCounted));
}

TEST_P(Profiling, WorksLinkedBeforeTheLibrary) {
  EXPECT_THAT(job("linked_"), AllOf(kRight, kCounted));
}

TEST_P(Profiling, WorksInsideTheProgram) {
  EXPECT_THAT(job("inside_"), AllOf(kRight, kCounted));
}

INSTANTIATE_TEST_SUITE_P(Programs, Profiling, Values("c", "cxx"), kNameByParameters);

}  // namespace
