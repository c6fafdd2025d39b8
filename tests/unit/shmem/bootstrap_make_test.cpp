// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/bootstrap/pe_list.hpp"
#include "shmem/bootstrap/single.hpp"

namespace shmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MakeBootstrap : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* name : {"SHMEM_BOOTSTRAP", kJobFdVariable, kJobRankVariable, kJobSizeVariable, "SHMEM_UID_RANK",
                             "SHMEM_UID_SIZE", "SHMEM_UID_SESSION_ID", "SHMEM_UID_SOCK_IFNAME"}) {
      ::unsetenv(name);
    }
  }
  static void set_job(const std::string& fd, const std::string& rank, const std::string& size) {
    ::setenv(kJobFdVariable, fd.c_str(), 1);
    ::setenv(kJobRankVariable, rank.c_str(), 1);
    ::setenv(kJobSizeVariable, size.c_str(), 1);
  }
  static Result<std::unique_ptr<Bootstrap>> make() {
    const auto options = read_options(process_environment());
    if (!options) return tl::make_unexpected(options.error());
    return make_bootstrap(bootstrap_request(*options));
  }
  static std::string error_text() {
    const auto made = make();
    return made ? "no error" : made.error().text;
  }
};

TEST_F(MakeBootstrap, MakesAJobOfOneWithoutALauncher) {
  for (const char* value : {"", "auto", "local"}) {
    ::setenv("SHMEM_BOOTSTRAP", value, 1);
    const auto made = make();
    ASSERT_TRUE(made);
    EXPECT_EQ((*made)->rank(), 0);
    EXPECT_EQ((*made)->size(), 1);
    EXPECT_TRUE((*made)->barrier());
  }
}

TEST_F(MakeBootstrap, RefusesBootstrapsThatDoNotExist) {
  ::setenv("SHMEM_BOOTSTRAP", "telepathy", 1);
  EXPECT_THAT(error_text(), AllOf(HasSubstr("SHMEM_BOOTSTRAP=telepathy"), HasSubstr("auto, local, uid, pmix or mpi")));
}

TEST_F(MakeBootstrap, NamesWhatIsMissingOrWrongForAJobOverTcp) {
  ::setenv("SHMEM_BOOTSTRAP", "uid", 1);
  EXPECT_THAT(error_text(), HasSubstr("SHMEM_UID_RANK is not set"));
  ::setenv("SHMEM_UID_RANK", "2", 1);
  EXPECT_THAT(error_text(), HasSubstr("SHMEM_UID_SIZE is not set"));
  ::setenv("SHMEM_UID_SIZE", "2", 1);
  EXPECT_THAT(error_text(), HasSubstr("SHMEM_UID_SESSION_ID is not set"));
  ::setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:0", 1);
  EXPECT_THAT(error_text(), HasSubstr("there is no PE 2 in a job of 2"));
  ::setenv("SHMEM_UID_RANK", "0", 1);
  EXPECT_THAT(error_text(), AllOf(HasSubstr("SHMEM_UID_SESSION_ID=127.0.0.1:0"), HasSubstr("cannot know which port")));
  ::setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:http", 1);
  EXPECT_THAT(error_text(), HasSubstr("SHMEM_UID_SESSION_ID=127.0.0.1:http: \"http\" is no port"));
  ::setenv("SHMEM_BOOTSTRAP", "auto", 1);  // found by SHMEM_UID_RANK
  EXPECT_THAT(error_text(), HasSubstr("\"http\" is no port"));
}

TEST_F(MakeBootstrap, BelievesTheLauncherOrNobody) {
  const auto text_if_expected = [](int rank, int size) {
    BootstrapRequest request;
    request.expected = {rank, size};
    const auto made = make_bootstrap(std::move(request));
    return made ? "no error" : made.error().text;
  };
  EXPECT_EQ(text_if_expected(0, 1), "no error");
  EXPECT_THAT(text_if_expected(1, 2), AllOf(HasSubstr("this is PE 1 of 2"), HasSubstr("it is PE 0 of 1")));
}

TEST_F(MakeBootstrap, JoinsTheJobThatTheEnvironmentNames) {
  const auto job = JobMemory::create(4).value();
  set_job(std::to_string(job.fd()), "2", "4");
  const auto made = make();
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_EQ((*made)->rank(), 2);
  EXPECT_EQ((*made)->size(), 4);
  EXPECT_EQ(job.slot(2).state.load(), PeState::kJoined);
}

TEST_F(MakeBootstrap, NamesTheEnvironmentThatMakesNoSense) {
  const auto job = JobMemory::create(4).value();
  const std::string fd = std::to_string(job.fd());
  const std::string cases[][3] = {{"x", "0", "4"}, {fd, "4", "4"},   {fd, "-1", "4"},    {fd, "0", "0"},
                                  {fd, "1x", "4"}, {"-1", "0", "4"}, {fd, "0", "99999"}, {fd, "", "4"}};
  for (const auto& [number, rank, size] : cases) {
    set_job(number, rank, size);
    EXPECT_THAT(error_text(), HasSubstr("names no job of oshrun's: OSHRUN_JOB_FD=" + number + " OSHRUN_RANK=" + rank +
                                        " OSHRUN_SIZE=" + size));
  }
  ::unsetenv(kJobRankVariable);
  EXPECT_THAT(error_text(), HasSubstr("OSHRUN_RANK is not set"));
}

TEST_F(MakeBootstrap, SaysWhenTheJobsDescriptorIsGone) {
  set_job("9999", "0", "4");
  EXPECT_THAT(error_text(), AllOf(HasSubstr("cannot join the job"), HasSubstr("OSHRUN_JOB_FD=9999"),
                                  HasSubstr("Bad file descriptor")));
}

TEST(SingleBootstrap, GathersItsOwnBytes) {
  SingleBootstrap bootstrap;
  const std::vector<std::byte> mine = {std::byte{1}, std::byte{2}};
  EXPECT_EQ(bootstrap.allgather(mine).value(), mine);
}

TEST(SingleBootstrap, RemembersTheFirstReasonToAbort) {
  SingleBootstrap bootstrap;
  EXPECT_FALSE(bootstrap.aborted());
  EXPECT_EQ(bootstrap.abort(1, "first"), 1);
  EXPECT_EQ(bootstrap.abort(2, "second"), 1);
  EXPECT_EQ(bootstrap.aborted(), "first");
}

TEST(PeList, DrawsRunsTogether) {
  EXPECT_EQ(pe_list({3}), "PE 3");
  EXPECT_EQ(pe_list({0, 1}), "PEs 0, 1");
  EXPECT_EQ(pe_list({0, 2, 3, 4, 7, 9, 10}), "PEs 0, 2-4, 7, 9, 10");
}

}  // namespace
}  // namespace shmem
