// SPDX-License-Identifier: Apache-2.0
// oshcc and oshc++: from a source file to PEs.
#include <fstream>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{120};

struct Program {
  const char* name;
  const char* wrapper;
  const char* file;
  const char* text;
};

class Wrapper : public ::testing::TestWithParam<Program> {
 protected:
  TempDir dir_;
};

TEST_P(Wrapper, BuildsAProgramThatRunsAsPes) {
  const std::string source = dir_.file(GetParam().file);
  const std::string program = dir_.file("hello");
  std::ofstream(source) << GetParam().text;
  const auto compiled = run({test_support::program(GetParam().wrapper), "-Wall", "-Wextra", "-Wpedantic",
                             "-Wconversion", "-Werror", "-o", program, source},
                            {}, kLimit);
  ASSERT_EQ(compiled.exit.code, 0) << compiled.output;
  const auto ran = run({test_support::program("oshrun"), "-n", "2", "--gba", "off", program}, {}, kLimit);
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
int main() {
  shmem_init();
  std::cout << "PE " + std::to_string(shmem_my_pe()) + " of " + std::to_string(shmem_n_pes()) + "\n" << std::flush;
  shmem_finalize();
}
)";
// Programs use a team's handle as the pointer that it is: in initialisers, compared with NULL, as a condition.
constexpr const char* kTeams = R"(#include <shmem.h>
#include <stdio.h>
#include <string.h>
struct solver {
  shmem_team_t rows, columns;
};
static shmem_team_t none = SHMEM_TEAM_INVALID, null = NULL, world = SHMEM_TEAM_WORLD;
static const shmem_team_t known[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED};
static struct solver solver = {SHMEM_TEAM_INVALID, NULL};
#ifdef __cplusplus
static shmem_team_t empty{}, cpp_null = nullptr;
#else
#define KIND(handle) _Generic((handle), shmem_team_t : 't', shmem_ctx_t : 'c')
static shmem_team_t empty, cpp_null;
_Static_assert(KIND(SHMEM_TEAM_WORLD) == 't' && KIND(SHMEM_TEAM_INVALID) == 't' && KIND(SHMEM_CTX_DEFAULT) == 'c', "");
#endif
static int are_comparable(void) {
  shmem_team_t team = SHMEM_TEAM_INVALID, zero;
  memset(&zero, 0, sizeof zero);
  if (team == SHMEM_TEAM_INVALID && team == NULL && !team && zero == SHMEM_TEAM_INVALID) {
    return none == null && empty == cpp_null && solver.rows == solver.columns && known[0] == SHMEM_TEAM_WORLD &&
           world != SHMEM_TEAM_INVALID && SHMEM_TEAM_WORLD != SHMEM_TEAM_SHARED && SHMEM_TEAM_WORLD != NULL;
  }
  return 0;
}
int main(void) {
  shmem_team_t copy = NULL;
  shmem_init();
  const int split = shmem_team_split_strided(world, 0, 1, shmem_n_pes(), NULL, 0, &copy);
  if (split == 0 && copy && copy != world && shmem_team_sync(copy) == 0 && are_comparable()) {
    printf("PE %d of %d\n", shmem_team_my_pe(copy), shmem_team_n_pes(copy));
  }
  shmem_team_destroy(copy);
  shmem_team_destroy(NULL);
  shmem_finalize();
  return 0;
}
)";

INSTANTIATE_TEST_SUITE_P(Oshrun, Wrapper,
                         ::testing::Values(Program{"C", "oshcc", "hello.c", kC},
                                           Program{"Cpp", "oshc++", "hello.cpp", kCpp},
                                           Program{"TeamsInC", "oshcc", "teams.c", kTeams},
                                           Program{"TeamsInCpp", "oshc++", "teams.cpp", kTeams}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(WrapperShowme, PrintsTheCommandAndRunsNothing) {
  const auto linking = run({test_support::program("oshcc"), "--showme", "-o", "x", "no such.c"});
  EXPECT_EQ(linking.exit.code, 0);
  EXPECT_THAT(linking.output, AllOf(HasSubstr("/include"), HasSubstr("-o x no such.c"), HasSubstr("-lshmem")));
  const auto compiling = run({test_support::program("oshc++"), "-c", "x.cpp", "--showme"});
  EXPECT_THAT(compiling.output, AllOf(HasSubstr("-c x.cpp"), Not(HasSubstr("-lshmem"))));
}

}  // namespace
