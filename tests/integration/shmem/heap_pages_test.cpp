// SPDX-License-Identifier: Apache-2.0
// The kinds of pages that the heaps of real jobs get. Changes settings of the machine for a moment and restores them.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/fd.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr const char* kPoolSize = "/proc/sys/vm/nr_hugepages";
constexpr const char* kThp = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
constexpr int kPes = 2;
constexpr int kPagesOfAJob = kPes * 4;   // 8 MiB each
constexpr int kPool = 4 * kPagesOfAJob;  // some other job of the machine may take pages too
const std::vector<std::string> kSmallHeaps{"SHMEM_SYMMETRIC_SIZE=8m"};

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// Held by one of the programs that change the machine's settings, whichever build it is of.
const base::UniqueFd turn = [] {
  base::UniqueFd folder(::open("/proc/sys/vm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ::flock(folder.get(), LOCK_EX);
  return folder;
}();

/// Changes a setting of the kernel while the object lives.
class Setting {
 public:
  Setting(std::string file, const std::string& value) : file_(std::move(file)), before_(first_line(file_)) {
    if (const auto open = before_.find('['); open != std::string::npos) {
      before_ = before_.substr(open + 1, before_.find(']') - open - 1);
    }
    write(value);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { write(before_); }

 private:
  void write(const std::string& value) const { std::ofstream(file_) << value << "\n"; }

  std::string file_, before_;
};

int huge_pages(const std::string& which) {
  return std::stoi("0" + first_line("/sys/kernel/mm/hugepages/hugepages-2048kB/" + which));
}

/// Tests with a pool of huge pages; they are skipped if it cannot be made.
class HugePages : public testing::Test {
 protected:
  bool pool_of(int pages) {
    if (huge_pages("nr_hugepages") != 0) {
      return false;  // another program uses the pool
    }
    pool_ = std::make_unique<Setting>(kPoolSize, std::to_string(pages));
    return huge_pages("free_hugepages") == pages && huge_pages("resv_hugepages") == 0;
  }
  /// Waits, for a bounded time, until the killed processes are gone and have returned their memory.
  static bool is_returned(int pages) {
    for (int i = 0; i < 6000; ++i) {
      if (huge_pages("free_hugepages") == pages && huge_pages("resv_hugepages") == 0) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

 private:
  std::unique_ptr<Setting> pool_;
};

std::string output_of_job(std::vector<std::string> environment) {
  environment.insert(environment.end(), kSmallHeaps.begin(), kSmallHeaps.end());
  const auto job = run_clean(kPes, "off", {"shmem_pes", "heap_pages"}, environment);
  return job.output;
}

TEST_F(HugePages, AreTakenIfThePoolHasEnough) {
  if (!pool_of(kPool)) {
    GTEST_SKIP() << "no pool of huge pages can be made here";
  }
  for (const char* wanted : {"SHMEM_HUGEPAGES=auto", "SHMEM_HUGEPAGES=hugetlb"}) {
    const std::string output = output_of_job({wanted});
    EXPECT_THAT(output, AllOf(HasSubstr("pages hugetlb; numa "), HasSubstr("hugetlb 8192 kB"))) << wanted;
    EXPECT_THAT(output, Not(HasSubstr("pages 4 KiB")));
    EXPECT_TRUE(is_returned(kPool));
  }
  EXPECT_THAT(output_of_job({"SHMEM_HUGEPAGES=none"}), HasSubstr("pages 4 KiB"));
}

TEST_F(HugePages, AreNotTakenIfOneIsMissing) {
  if (!pool_of(kPagesOfAJob - 1)) {
    GTEST_SKIP() << "no pool of huge pages can be made here";
  }
  const std::string output = output_of_job({"SHMEM_HUGEPAGES=hugetlb"});
  EXPECT_THAT(output, AllOf(HasSubstr("shmem: SHMEM_HUGEPAGES=hugetlb is not available"),
                            HasSubstr("8 pages of 2 MiB are needed and "), HasSubstr("vm.nr_hugepages")));
  EXPECT_THAT(output_of_job({"SHMEM_HUGEPAGES=auto"}), Not(HasSubstr("is not available")));
  EXPECT_TRUE(is_returned(kPagesOfAJob - 1));
}

/// A control group that limits the huge pages of its processes; enter() returns the shell command to enter it.
class HugeTlbGroup {
 public:
  explicit HugeTlbGroup(const std::string& bytes) {
    for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      if (first_line(std::string(root) + "/cgroup.controllers").find("hugetlb") != std::string::npos) {
        root_ = root;
      }
    }
    if (root_.empty()) {
      return;
    }
    before_ = first_line(root_ + "/cgroup.subtree_control");
    std::ofstream(root_ + "/cgroup.subtree_control") << "+hugetlb";
    folder_ = root_ + "/shmem-heap-pages-test-" + std::to_string(::getpid());
    ::mkdir(folder_.c_str(), 0755);
    std::ofstream(folder_ + "/hugetlb.2MB.max") << bytes;
  }
  HugeTlbGroup(const HugeTlbGroup&) = delete;
  HugeTlbGroup& operator=(const HugeTlbGroup&) = delete;
  ~HugeTlbGroup() {
    if (root_.empty()) {
      return;
    }
    ::rmdir(folder_.c_str());
    if (before_.find("hugetlb") == std::string::npos) {
      std::ofstream(root_ + "/cgroup.subtree_control") << "-hugetlb";
    }
  }
  [[nodiscard]] bool limits() const {
    const std::string limit = root_.empty() ? "" : first_line(folder_ + "/hugetlb.2MB.max");
    return !limit.empty() && limit != "max";
  }
  [[nodiscard]] std::string enter() const { return "echo $$ > " + folder_ + "/cgroup.procs"; }

 private:
  std::string root_, before_, folder_;
};

TEST_F(HugePages, AreGivenUpByAllIfAControlGroupLimitsThem) {
  const HugeTlbGroup group("6M");
  if (!group.limits()) {
    GTEST_SKIP() << "no control group can be made here that limits huge pages";
  }
  if (!pool_of(kPool)) {
    GTEST_SKIP() << "no pool of huge pages can be made here";
  }
  const auto job = run({"sh", "-c", group.enter() + " && exec \"$0\" \"$@\"", program("oshrun"), "-n",
                        std::to_string(kPes), "--gba", "off", test_program("shmem_pes"), "heap_pages"},
                       kSmallHeaps);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("hugetlb: PE "), HasSubstr("cannot touch 8 MiB of huge pages")));
  EXPECT_THAT(job.output, Not(HasSubstr("pages hugetlb")));
  EXPECT_TRUE(is_returned(kPool));
}

TEST_F(HugePages, AreReturnedWhenThePesAreKilled) {
  if (!pool_of(kPool)) {
    GTEST_SKIP() << "no pool of huge pages can be made here";
  }
  Process job(oshrun(kPes, "off", {test_program("shmem_pes"), "heap_pages", "wait"}), kSmallHeaps);
  ASSERT_TRUE(job.wait_for_output("pages hugetlb", Seconds{120})) << job.output();
  EXPECT_LE(huge_pages("free_hugepages"), kPool - kPagesOfAJob);
  job.signal(SIGKILL);
  EXPECT_TRUE(is_returned(kPool));
}

TEST(TransparentHugePages, AreTakenIfTheKernelAllowsThem) {
  const Setting setting(kThp, "advise");
  if (first_line(kThp).find("[advise]") == std::string::npos) {
    GTEST_SKIP() << kThp << " cannot be changed here";
  }
  EXPECT_THAT(output_of_job({"SHMEM_HUGEPAGES=thp"}), AllOf(HasSubstr("pages thp;"), HasSubstr("thp 4096 kB")));
  if (huge_pages("nr_hugepages") == 0) {
    EXPECT_THAT(output_of_job({}), HasSubstr("pages thp;")) << "auto takes THP if there is no pool";
  }
}

TEST(TransparentHugePages, AreReportedIfRequestedButMissing) {
  const Setting setting(kThp, "never");
  if (first_line(kThp).find("[never]") == std::string::npos) {
    GTEST_SKIP() << kThp << " cannot be changed here";
  }
  EXPECT_THAT(output_of_job({"SHMEM_HUGEPAGES=thp"}),
              AllOf(HasSubstr("shmem: SHMEM_HUGEPAGES=thp is not available"), HasSubstr("is \"never\"")));
}

TEST(HeapInfo, HasPagesAndNodeAndTheReason) {
  EXPECT_THAT(output_of_job({"SHMEM_INFO=1", "SHMEM_HUGEPAGES=none", "SHMEM_NUMA=none"}),
              HasSubstr("shmem: pages of the heaps: 4 KiB (SHMEM_HUGEPAGES=none); NUMA: none (SHMEM_NUMA=none)"));
}

TEST(LockedMemory, IsReportedOnce) {
  const auto job = run_pes(kPes, "off", {"shmem_pes", "heap_pages", "locked"}, kSmallHeaps);
  if (job.output.find("cannot lock memory") != std::string::npos) {
    GTEST_SKIP() << job.output;
  }
  EXPECT_TRUE(job.exit.clean()) << job.output;
  const std::string warning = "PE 0 has called mlockall(MCL_FUTURE): the symmetric heaps (2 of 8 MiB) take all their";
  EXPECT_THAT(job.output, HasSubstr(warning));
  EXPECT_EQ(job.output.find("mlockall"), job.output.rfind("mlockall")) << job.output;
}

}  // namespace
