// SPDX-License-Identifier: Apache-2.0
// Which plug-in is chosen, with libraries that look like an MPI.
#include "shmem/bootstrap/mpi_plugin.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "shmem/bootstrap/mpi/make.hpp"

namespace shmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using LoadedLibrary = std::unique_ptr<void, CloseLibrary>;

/// As Python loads MPI: no other library sees it.
LoadedLibrary load_stand_in(const char* path) {
  LoadedLibrary library(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
  EXPECT_TRUE(library) << ::dlerror();
  return library;
}

std::string load_error() {
  const auto loaded = load_mpi_plugin("");
  return loaded ? "no error" : loaded.error().text;
}

TEST(MpiPlugin, IsThatOfTheMake) {
  EXPECT_EQ(mpi_plugin_name("Open MPI v4.1.4, package: Debian OpenMPI"), "libshmem_bootstrap_openmpi.so");
  for (const char* version :
       {"MPICH Version:\t4.0.2", "Intel(R) MPI Library 2021.8 for Linux* OS", "MVAPICH2 Version :\t2.3",
        "MPI VERSION    : CRAY MPICH version 8.1.9.4 (ANL base 3.4a2)"}) {
    EXPECT_EQ(mpi_plugin_name(version), "libshmem_bootstrap_mpich.so") << version;
  }
  EXPECT_EQ(mpi_plugin_name("Another MPI 1.0"), "libshmem_bootstrap_mpi.so");
}

TEST(MpiPlugin, NeedsAnMpi) {
  EXPECT_EQ(loaded_mpi(), "");
  EXPECT_THAT(load_error(), AllOf(HasSubstr("this process has loaded no MPI"), HasSubstr("call MPI_Init before")));
}

TEST(MpiPlugin, IsForTheMpiThatIsLoaded) {
  const auto other = load_stand_in(STAND_IN_OTHER);
  EXPECT_EQ(loaded_mpi(), "Another MPI 1.0");
  EXPECT_THAT(load_error(), AllOf(HasSubstr("cannot start by MPI: "), HasSubstr("libshmem_bootstrap_mpi.so"),
                                  HasSubstr("this process uses Another MPI 1.0: build libshmem with that MPI")));
}

TEST(MpiPlugin, IsForTheMpiThatIsInitialised) {
  const auto mpich = load_stand_in(STAND_IN_INITIALISED_MPICH);
  {
    const auto other = load_stand_in(STAND_IN_OTHER);
    EXPECT_EQ(loaded_mpi(), "MPICH Version: 9");
  }
  EXPECT_EQ(loaded_mpi(), "MPICH Version: 9");
}

TEST(MpiPlugin, IsThatOfTheStandardsInterface) {
  const auto mpi = load_stand_in(STAND_IN_ABI);
  EXPECT_EQ(loaded_mpi(), "Open MPI v6.0.0 (MPI ABI)");
  EXPECT_EQ(mpi_plugin_name(loaded_mpi()), "libshmem_bootstrap_abi.so");
}

TEST(MpiPlugin, IsTheGivenOne) {
  const auto mpich = load_stand_in(STAND_IN_INITIALISED_MPICH);
  const auto loaded = load_mpi_plugin(STAND_IN_OTHER);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().text, AllOf(HasSubstr(STAND_IN_OTHER), HasSubstr(SHMEM_MPI_PLUGIN_SYMBOL),
                                         HasSubstr("SHMEM_MPI_PLUGIN must name a plug-in")));
}

}  // namespace
}  // namespace shmem
