// SPDX-License-Identifier: Apache-2.0
// The type of pages of the heaps, and their NUMA placement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "base/mapping.hpp"
#include "base/memfd.hpp"
#include "shmem/memory/memory_limit.hpp"
#include "shmem/memory/pages.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

namespace shmem {
namespace {

using testing::_;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::NiceMock;
using testing::Return;

/// The settings of transparent huge pages, in the kernel's format.
class ThpSettings : public testing::Test {
 protected:
  void set(const std::string& general, const std::string& of_2_mib) const {
    write("shmem_enabled", general);
    if (of_2_mib.empty()) {
      return;
    }
    ::mkdir(folder_.file("hugepages-2048kB").c_str(), 0755);
    write("hugepages-2048kB/shmem_enabled", of_2_mib);
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_.file(name)) << text; }
  [[nodiscard]] std::string obstacle() const { return thp_obstacle(folder_.path()); }
  [[nodiscard]] std::string folder() const { return folder_.path(); }

 private:
  test_support::TempDir folder_;
};

TEST_F(ThpSettings, OfTheKernelApplyIfTheSizeHasNone) {
  for (const char* yes :
       {"[always] within_size advise never", "always [within_size] advise", "always within_size [advise]", "[force]"}) {
    set(yes, "");
    EXPECT_EQ(obstacle(), "") << yes;
  }
  set("always within_size advise [never] deny force", "");
  EXPECT_THAT(obstacle(), AllOf(HasSubstr("shmem_enabled is \"never\""), HasSubstr("advise")));
  set("always within_size advise never [deny] force", "");
  EXPECT_THAT(obstacle(), HasSubstr("\"deny\""));
}

TEST_F(ThpSettings, OfTheSizeTakePrecedence) {
  set("always within_size advise [never] deny force", "always inherit within_size [advise] never");
  EXPECT_EQ(obstacle(), "");
  set("[always] within_size advise never deny force", "always inherit within_size advise [never]");
  EXPECT_THAT(obstacle(), HasSubstr("hugepages-2048kB/shmem_enabled is \"never\""));
  set("always within_size [advise] never deny force", "always [inherit] within_size advise never");
  EXPECT_EQ(obstacle(), "");
  set("always within_size advise never [deny] force", "[always] inherit within_size advise never");
  EXPECT_THAT(obstacle(), HasSubstr("\"deny\"")) << "the kernel's own setting forbids all sizes";
}

TEST_F(ThpSettings, MayBeMissing) {
  EXPECT_THAT(obstacle(), HasSubstr("this kernel has none"));
}

TEST_F(ThpSettings, DecideThePagesOfAHeapThatAsksForThem) {
  set("[advise]", "");
  auto file = create_heap_file(2 * base::kHugePageSize, HugePages::kThp, folder());
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->pages, PageKind::kThp);
  EXPECT_EQ(file->reason, "");
  EXPECT_TRUE(base::check_memfd(file->file.get(), 2 * base::kHugePageSize));

  set("[never]", "");
  file = create_heap_file(2 * base::kHugePageSize, HugePages::kThp, folder());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pages, PageKind::kBase);
  EXPECT_THAT(file->reason, HasSubstr("thp: "));
}

/// Larger than any pool of huge pages. Without the pool the file is sparse.
constexpr std::size_t kTooLargeForMemory = std::size_t{1} << 44;

TEST_F(ThpSettings, AreTheFallbackForTooFewHugePages) {
  set("[advise]", "");
  for (const HugePages wanted : {HugePages::kAuto, HugePages::kHugetlb}) {
    const auto file = create_heap_file(kTooLargeForMemory, wanted, folder());
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_EQ(file->pages, PageKind::kThp);
    EXPECT_THAT(file->reason, AllOf(HasSubstr("hugetlb: "), HasSubstr("8388608 pages of 2 MiB are needed")));
  }
  set("[never]", "");
  const auto file = create_heap_file(kTooLargeForMemory, HugePages::kAuto, folder());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pages, PageKind::kBase);
  EXPECT_THAT(file->reason, AllOf(HasSubstr("hugetlb: "), HasSubstr("; thp: ")));
}

TEST_F(ThpSettings, AreIgnoredByAHeapThatWantsSmallPages) {
  set("[always]", "");
  const auto file = create_heap_file(base::kHugePageSize, HugePages::kNone, folder());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pages, PageKind::kBase);
  EXPECT_EQ(file->reason, "SHMEM_HUGEPAGES=none");
}

TEST(PageKind, IsReadableAsText) {
  EXPECT_EQ(to_string(PageKind::kBase), "4 KiB");
  EXPECT_EQ(to_string(PageKind::kThp), "thp");
  EXPECT_EQ(to_string(PageKind::kHugetlb), "hugetlb");
}

class Populate : public testing::Test {
 protected:
  void SetUp() override {
    if (test_support::kEmulated) {
      GTEST_SKIP() << "qemu-user does not populate pages";
    }
  }
};

TEST_F(Populate, TouchesEveryPage) {
  const auto fd = base::create_memfd("test", base::kHugePageSize).value();
  const auto mapping = base::Mapping::share(fd.get(), base::kHugePageSize).value();
  ASSERT_TRUE(populate(mapping.data(), mapping.size()));
  struct stat status {};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(static_cast<std::size_t>(status.st_blocks) * 512, base::kHugePageSize);
}

TEST_F(Populate, ReportsWhatItCouldNotTouch) {
  void* hole = ::mmap(nullptr, base::kHugePageSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto touched = populate(static_cast<std::byte*>(hole), base::kHugePageSize);
  ::munmap(hole, base::kHugePageSize);
  ASSERT_FALSE(touched);
  EXPECT_THAT(touched.error().text, HasSubstr("2 MiB of huge pages"));
}

class FakeNuma : public Numa {
 public:
  MOCK_METHOD(std::vector<int>, nodes, (), (const, override));
  MOCK_METHOD(int, my_node, (), (const, override));
  MOCK_METHOD(int, bind, (std::byte*, std::size_t, int, const std::vector<int>&), (override));
};

class Place : public testing::Test {
 protected:
  Place() {
    ON_CALL(numa_, nodes).WillByDefault(Return(std::vector<int>{0, 1, 3}));
    ON_CALL(numa_, my_node).WillByDefault(Return(1));
  }
  NumaPlacement place_heap(NumaPolicy policy) { return place(heap_.data(), heap_.size(), policy, numa_); }

  std::array<std::byte, 64> heap_{};
  NiceMock<FakeNuma> numa_;
};

TEST_F(Place, PrefersThePesOwnNode) {
  EXPECT_CALL(numa_, bind(heap_.data(), heap_.size(), MPOL_PREFERRED, ElementsAre(1))).WillOnce(Return(0));
  const auto placement = place_heap(NumaPolicy::kLocal);
  EXPECT_EQ(placement.text, "local (node 1)");
  EXPECT_EQ(placement.reason, "");
}

TEST_F(Place, InterleavesOverAllAllowedNodes) {
  EXPECT_CALL(numa_, bind(heap_.data(), heap_.size(), MPOL_INTERLEAVE, ElementsAre(0, 1, 3))).WillOnce(Return(0));
  EXPECT_EQ(place_heap(NumaPolicy::kInterleave).text, "interleave (nodes 0, 1, 3)");
}

TEST_F(Place, LeavesTheMemoryAloneWhenAsked) {
  EXPECT_CALL(numa_, bind).Times(0);
  const auto placement = place_heap(NumaPolicy::kNone);
  EXPECT_EQ(placement.text, "none");
  EXPECT_EQ(placement.reason, "SHMEM_NUMA=none");
}

TEST_F(Place, ReportsWhyThePlacementFailed) {
  EXPECT_CALL(numa_, bind(_, _, _, _)).WillOnce(Return(EPERM));
  EXPECT_EQ(place_heap(NumaPolicy::kLocal).text, "none");
  EXPECT_CALL(numa_, bind(_, _, _, _)).WillOnce(Return(EPERM));
  EXPECT_EQ(place_heap(NumaPolicy::kInterleave).reason, "mbind: Operation not permitted");

  ON_CALL(numa_, my_node).WillByDefault(Return(2));
  EXPECT_THAT(place_heap(NumaPolicy::kLocal).reason, HasSubstr("node, 2, has no memory"));
  ON_CALL(numa_, nodes).WillByDefault(Return(std::vector<int>{}));
  EXPECT_THAT(place_heap(NumaPolicy::kLocal).reason, HasSubstr("no NUMA nodes"));
}

TEST(SystemNuma, SetsThePolicyOfTheMemory) {
  Numa& numa = system_numa();
  if (numa.nodes().empty()) {
    GTEST_SKIP() << "this system has no NUMA nodes";
  }
  const auto fd = base::create_memfd("test", 2 * base::kHugePageSize).value();
  const auto mapping = base::Mapping::share(fd.get(), 2 * base::kHugePageSize).value();
  const auto mode_at = [&](std::size_t offset) {
    int mode = -1;
    const long got = ::syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, mapping.data() + offset, MPOL_F_ADDR);
    return got == 0 ? mode : -1;
  };
  const auto local = place(mapping.data(), base::kHugePageSize, NumaPolicy::kLocal, numa);
  if (local.reason.find("not permitted") != std::string::npos) {
    GTEST_SKIP() << local.reason;
  }
  EXPECT_EQ(local.reason, "");
  EXPECT_EQ(mode_at(0), MPOL_PREFERRED);
  EXPECT_EQ(mode_at(base::kHugePageSize - 1), MPOL_PREFERRED);
  EXPECT_EQ(mode_at(base::kHugePageSize), MPOL_DEFAULT) << "the policy must not extend to the next heap";
  EXPECT_EQ(place(mapping.data(), base::kHugePageSize, NumaPolicy::kInterleave, numa).reason, "");
  EXPECT_EQ(mode_at(0), MPOL_INTERLEAVE);
}

TEST(CommitLimit, AppliesOnlyIfTheKernelDoesNotOvercommit) {
  const std::string meminfo = "MemTotal:  100 kB\nCommitLimit:      1000 kB\nCommitted_AS:      400 kB\n";
  EXPECT_EQ(commit_limit("0\n", meminfo), std::nullopt);
  EXPECT_EQ(commit_limit("1\n", meminfo), std::nullopt);
  EXPECT_EQ(commit_limit("", meminfo), std::nullopt);
  EXPECT_EQ(commit_limit("2\n", meminfo), std::size_t{600} << 10);
  EXPECT_EQ(commit_limit("2\n", "CommitLimit: 1 kB\nCommitted_AS: 2 kB\n"), 0U);
}

}  // namespace
}  // namespace shmem
