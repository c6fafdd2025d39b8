// SPDX-License-Identifier: Apache-2.0
// Every routine of OpenSHMEM 1.6, for every type, on heap and global memory: programs in C11 and C++ that fail with a
// message if a call does not behave as specified.
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;

using Parameters = std::tuple<const char*, const char*, int>;

class OpenShmemPrograms : public testing::TestWithParam<Parameters> {};

TEST_P(OpenShmemPrograms, DoesWhatTheSpecificationSays) {
  const auto [family, language, pes] = GetParam();
  run_clean(pes, "off", {std::string("openshmem_") + language + "_pes", family});
}

INSTANTIATE_TEST_SUITE_P(All, OpenShmemPrograms,
                         testing::Combine(testing::Values("setup", "team", "rma", "atomic", "wait", "collective",
                                                          "threads", "compat"),
                                          testing::Values("c", "cxx"), testing::Values(1, 2, 3, 4, 7)),
                         kNameByParameters);

TEST(OpenShmem, ThreadsOfTheSamePeUseTheDeviceAtOnce) {
  run_clean(3, "fake", {"openshmem_c_pes", "threads"});
}

}  // namespace
