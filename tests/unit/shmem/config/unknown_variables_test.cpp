// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/unknown_variables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "shmem/config/options.hpp"

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> about(const char* variable) {
  const std::array<const char*, 3> environment{"HOME=/", variable, nullptr};
  return shmem::unknown_variables(environment.data());
}

TEST(UnknownVariables, AreNotThoseOfTheTable) {
  for (const shmem::OptionSpec& spec : shmem::option_table()) {
    EXPECT_THAT(about((std::string(spec.name) + "=1").c_str()), IsEmpty()) << spec.name;
  }
  EXPECT_THAT(about("SHMEM_CONFIG_FILE=none"), IsEmpty());
}

TEST(UnknownVariables, AreToldWithTheNearestName) {
  EXPECT_THAT(about("SHMEM_SYMETRIC_SIZE=2G"), ElementsAre(AllOf(HasSubstr("SHMEM_SYMETRIC_SIZE is ignored"),
                                                                 HasSubstr("is SHMEM_SYMMETRIC_SIZE meant"))));
  EXPECT_THAT(about("SHMEM_DEBG=1"), ElementsAre(HasSubstr("is SHMEM_DEBUG meant")));
  EXPECT_THAT(about("SHMEM_BARIER_TIMOUT=1"), ElementsAre(HasSubstr("is SHMEM_BARRIER_TIMEOUT meant")));
  EXPECT_THAT(about("SHMEM_CONFIGFILE"), ElementsAre(HasSubstr("is SHMEM_CONFIG_FILE meant")));
}

TEST(UnknownVariables, OfOtherLibrariesAreToldWithWhatTakesTheirPlace) {
  EXPECT_THAT(about("SHMEM_SYMMETRIC_HEAP_SIZE=4G"),
              ElementsAre(HasSubstr("Open MPI's; use SHMEM_SYMMETRIC_SIZE here")));
  EXPECT_THAT(about("SHMEM_OFI_PROVIDER=tcp"), ElementsAre(HasSubstr("nothing takes its place here")));
  EXPECT_THAT(about("SHMEM_COLL_RADIX=4"), ElementsAre(HasSubstr("use SHMEM_COLLECTIVE_TUNING here")));
}

// They may be variables of the program, which shares memory in another way.
TEST(UnknownVariables, ThatResembleNoneAreThePrograms) {
  for (const char* const name :
       {"SHMEM_NAME=x", "SHMEM_HOME=/opt", "SHMEM_=1", "SHMEM=1", "SHMEM_ROOT=/", "SHMEMX=1"}) {
    EXPECT_THAT(about(name), IsEmpty()) << name;
  }
}

}  // namespace
