// SPDX-License-Identifier: Apache-2.0
// oshcc and oshc++: from a source file to PEs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/process.hpp"

namespace {

using test_support::Seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kLimit{100};

struct Language {
  const char* wrapper;
  const char* file;
  const char* text;
};

class Wrapper : public ::testing::TestWithParam<Language> {
 protected:
  test_support::TempDir dir_;
};

TEST_P(Wrapper, BuildsAProgramThatRunsAsPes) {
  const std::string source = dir_.file(GetParam().file);
  const std::string program = dir_.file("hello");
  std::ofstream(source) << GetParam().text;
  const auto compiled =
      test_support::run({test_support::program(GetParam().wrapper), "-Wall", "-o", program, source}, {}, kLimit);
  ASSERT_EQ(compiled.exit.code, 0) << compiled.output;
  const auto ran = test_support::run({test_support::program("oshrun"), "-n", "2", "--gba", "off", program}, {}, kLimit);
  EXPECT_EQ(ran.exit.code, 0) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("PE 0 of 2\n"), HasSubstr("PE 1 of 2\n")));
}

constexpr const char* kC = R"(#include <shmem.h>
#include <stdio.h>
int main(void) {
  shmem_init();
  printf("PE %d of %d\n", shmem_my_pe(), shmem_n_pes());
  shmem_finalize();
  return 0;
}
)";
constexpr const char* kCpp = R"(#include <shmem.h>
#include <iostream>
#include <string>
int main() {
  shmem_init();
  std::cout << "PE " + std::to_string(shmem_my_pe()) + " of " + std::to_string(shmem_n_pes()) + "\n" << std::flush;
  shmem_finalize();
}
)";

INSTANTIATE_TEST_SUITE_P(Oshrun, Wrapper,
                         ::testing::Values(Language{"oshcc", "hello.c", kC}, Language{"oshc++", "hello.cpp", kCpp}),
                         [](const auto& language) { return std::string(language.index == 0 ? "C" : "Cpp"); });

TEST(WrapperShowme, PrintsTheCommandAndRunsNothing) {
  const auto linking = test_support::run({test_support::program("oshcc"), "--showme", "-o", "x", "no such.c"});
  EXPECT_EQ(linking.exit.code, 0);
  EXPECT_THAT(linking.output, AllOf(HasSubstr("/include"), HasSubstr("-o x no such.c"), HasSubstr("-lshmem")));
  const auto compiling = test_support::run({test_support::program("oshc++"), "-c", "x.cpp", "--showme"});
  EXPECT_THAT(compiling.output, AllOf(HasSubstr("-c x.cpp"), Not(HasSubstr("-lshmem"))));
}

}  // namespace
