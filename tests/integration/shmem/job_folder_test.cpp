// SPDX-License-Identifier: Apache-2.0
// Jobs and groups whose PEs meet in a folder (SHMEM_JOB_DIR), each in namespaces of its own, as pods of one node have.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>

#include "base/fd.hpp"
#include "base/folder.hpp"
#include "tests/integration/shmem/group_checks.hpp"
#include "tests/support/pe.hpp"
#include "tests/support/pod.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace group_ranks;
using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{120};
constexpr int kOwn = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS;

std::size_t sockets_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.is_socket() ? 1 : 0;
  }
  return count;
}

/// The command in new namespaces, with process numbers of its own.
Words in_pod(const Words& command) {
  Words line{"unshare", "--user", "--map-current-user", "-n",          "-i", "-p", "-m",
             "-u",      "--fork", "--kill-child",       "--mount-proc"};
  if (::geteuid() == 0) {
    line.erase(line.begin() + 1, line.begin() + 3);
  }
  line.insert(line.end(),
              {"sh", "-c", R"("$0" "$@"; exit $?)"});  // the first process ignores signals that it does not handle
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

class JobFolder : public Test {
 protected:
  void SetUp() override {
    if (run(in_pod({"true"})).exit.code != 0) {
      GTEST_SKIP() << "this machine does not permit such namespaces";
    }
  }
  /// Three PEs, each in a pod, do that action.
  Outcome run_pods(const std::string& action) {
    constexpr int kPes = 3;
    std::vector<std::unique_ptr<Process>> pes;
    pes.reserve(kPes);
    for (int pe = 0; pe < kPes; ++pe) {
      pes.push_back(std::make_unique<Process>(
          in_pod({test_program("shmem_pes"), "uid", dir_.file("id"), std::to_string(pe), std::to_string(kPes), action}),
          Words{"SHMEM_JOB_DIR=" + folder(), "SHMEM_GBA=off", "SHMEM_INFO=1"}));
    }
    Outcome all{};
    all.exit.code = 0;
    for (const auto& pe : pes) {
      const auto exit = pe->wait(kLimit);
      EXPECT_TRUE(exit.has_value()) << "a PE still runs: " << pe->output();
      all.exit.code += exit ? std::abs(exit->code) : 1000;
      all.output += pe->output();
    }
    return all;
  }
  [[nodiscard]] std::string folder() const { return dir_.file("jobs"); }  // made by the first

  TempDir dir_;
};

TEST_F(JobFolder, HasThePesOfAJobOnOneNode) {
  const auto job = run_pods("hello");
  EXPECT_EQ(job.exit.code, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr("shmem: 1 node\n")) << job.output;
  struct stat status {};
  ASSERT_EQ(::stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  EXPECT_EQ(sockets_in(folder()), 0U) << "of a job that has ended";
}

TEST_F(JobFolder, ShowsTheEndOfAPe) {
  const auto job = run_pods("die");
  EXPECT_THAT(job.output, ContainsRegex("PE 1 .* is lost")) << job.output;
}

/// Ranks in pods; rank 1 ends if it is to. What a rank has found wrong is its exit code.
std::vector<int> run_pods_of_group(int namespaces, const std::string& folder, bool one_ends) {
  constexpr int kRanks = 3;
  SharedStore store;
  const TempDir elsewhere;
  std::vector<std::unique_ptr<Pod>> pods;
  pods.reserve(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    pods.push_back(std::make_unique<Pod>(namespaces, [&, rank] {
      if (!live_as_in_container(folder, elsewhere.path())) {
        return Pod::kNotPossible;
      }
      ::setenv("SHMEM_JOB_DIR", elsewhere.path().c_str(), 1);
      shmemx_group_t* group = nullptr;
      const shmemx_group_store_t calls = store.calls();
      if (shmemx_group_create(&calls, rank, kRanks, &group) != 0) {
        std::fprintf(stderr, "%s\n", shmemx_error_text());
        return 1;
      }
      if (!check_kind(group, SHMEMX_GROUP_ALLREDUCE, rank, kRanks, 100'000, 0).empty()) {
        return 2;
      }
      shmemx_group_statistics_t statistics{};
      if (shmemx_group_statistics(group, &statistics) != 0 || statistics.sent_bytes != 0) {
        return 3;  // they are not on one node
      }
      if (one_ends && rank == 1) {
        ::_exit(0);
      }
      if (one_ends) {
        const shmemx_group_call_t barrier = call_of(SHMEMX_GROUP_BARRIER);
        const int error = shmemx_group_run(group, &barrier);
        const std::string text = shmemx_error_text();
        return (error == -EOWNERDEAD || error == -ECANCELED) && text.find("rank 1") != std::string::npos ? 0 : 4;
      }
      shmemx_group_destroy(group);
      return 0;
    }));
  }
  std::vector<int> codes;
  codes.reserve(pods.size());
  for (const auto& pod : pods) {
    codes.push_back(pod->exit_code());
  }
  return codes;
}

TEST_F(JobFolder, HasTheRanksOfAGroupOnOneNode) {
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  for (const int namespaces : {kOwn, kOwn | CLONE_NEWUSER}) {
    for (const bool one_ends : {false, true}) {
      const auto codes = run_pods_of_group(namespaces, folder(), one_ends);
      if (codes.front() == Pod::kNotPossible) {
        GTEST_SKIP() << "this machine does not permit such namespaces";
      }
      EXPECT_THAT(codes, Each(0)) << namespaces << ' ' << one_ends;
      EXPECT_EQ(sockets_in(folder()), 0U);
    }
  }
}

TEST_F(JobFolder, LosesWhatAKilledProcessHasLeft) {
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  const auto bind = [this](const std::string& name) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    (folder() + name).copy(address.sun_path, sizeof address.sun_path - 1);
    base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  };
  bind("/shmem-old");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(folder() + "/shmem-old", long_ago);
  bind("/shmem-young");  // it may be of a process that is about to listen
  const base::UniqueFd used = bind("/shmem-used");
  ASSERT_EQ(::listen(used.get(), 1), 0);
  std::filesystem::last_write_time(folder() + "/shmem-used", long_ago);
  EXPECT_THAT(run_pods_of_group(kOwn, folder(), false), AnyOf(Each(0), Each(Pod::kNotPossible)));
  EXPECT_THAT(base::names_in(folder()), ElementsAre("shmem-used", "shmem-young"));
}

TEST(JobFolderRefused, NamesFolderAndReason) {
  const TempDir dir;
  const std::string file = dir.file("file");
  std::ofstream(file) << '\n';
  const std::string shared = dir.file("shared");
  std::filesystem::create_directory(shared);
  ::chmod(shared.c_str(), 0777);
  for (const auto& [folder, text] : {std::pair{file, "is no folder"},
                                     {shared, "has mode 777: it must belong to user"},
                                     {dir.file("no/such"), "cannot make the folder"},
                                     {"/tmp/" + std::string(90, 'x'), "sockets in it allow"}}) {
    const auto job = run({test_program("shmem_pes"), "uid", dir.file("id"), "0", "1", "hello"},
                         {"SHMEM_JOB_DIR=" + folder, "SHMEM_GBA=off"}, kLimit);
    EXPECT_NE(job.exit.code, 0);
    EXPECT_THAT(job.output, AllOf(HasSubstr(folder), HasSubstr(text)));
    const auto group = run({oshrun(2, "off", {})[0], "-n", "2", "--gba", "off", test_program("memory_pes"), "none"},
                           {"SHMEM_JOB_DIR=" + folder}, kLimit);
    EXPECT_NE(group.exit.code, 0);
    EXPECT_THAT(group.output, AllOf(HasSubstr(folder), HasSubstr(text)));
  }
}

}  // namespace
