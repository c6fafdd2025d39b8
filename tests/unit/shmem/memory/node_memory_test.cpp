// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/node_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/memfd.hpp"
#include "base/size_text.hpp"
#include "shmem/bootstrap/local.hpp"
#include "shmem/bootstrap/single.hpp"
#include "shmem/memory/memory_limit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/unit/shmem/bootstrap_processes.hpp"

namespace shmem {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::in_processes;
using ::testing::IsEmpty;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Runs `body` with the node memory of `pes` PEs, each of which asks for heap_size(pe).
template <typename HeapSize, typename Body>
std::vector<std::string> with_memory(int pes, HeapSize heap_size, Body body) {
  const auto job = std::make_shared<const JobMemory>(JobMemory::create(pes).value());
  return in_processes(pes, [&](int pe) -> std::string {
    auto bootstrap = LocalBootstrap::join(job, pe).value();
    auto memory = NodeMemory::create(*bootstrap, heap_size(pe));
    if (!memory) {
      return memory.error().text;
    }
    return body(pe, *bootstrap, *memory);
  });
}

std::string nothing(int /*pe*/, Bootstrap& /*bootstrap*/, NodeMemory& /*memory*/) {
  return "";
}

std::vector<std::string> errors_of(int pes, std::size_t heap_size) {
  return with_memory(
      pes, [&](int) { return heap_size; }, nothing);
}

TEST(NodeMemory, IsFetchedWithinTheGivenTimeOrNotAtAll) {
  const auto job = std::make_shared<const JobMemory>(JobMemory::create(2).value());
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    auto bootstrap = LocalBootstrap::join(job, pe).value();
    const auto memory = NodeMemory::create(*bootstrap, kMiB, 0, {}, std::chrono::milliseconds{0});
    return memory ? "no error" : memory.error().text;
  });
  EXPECT_THAT(texts[0], HasSubstr("PE 0: PE 1 did not fetch the node's memory in time"));
  EXPECT_THAT(texts[1], HasSubstr("shmem: PE"));
}

TEST(NodeMemory, IsOneMemoryForAllPes) {
  constexpr int kPes = 4;
  const auto body = [](int pe, Bootstrap& bootstrap, NodeMemory& memory) -> std::string {
    const auto mark = static_cast<std::byte>(pe + 1);
    if (memory.heap(pe)[0] != std::byte{0} || memory.metadata(pe)[kMetadataSize - 1] != std::byte{0}) {
      return "not zero";
    }
    if (auto met = bootstrap.barrier(); !met) {
      return met.error().text;
    }
    memory.heap(pe)[0] = mark;
    memory.heap(pe)[memory.heap_size() - 1] = mark;
    memory.metadata(pe)[0] = mark;
    memory.metadata(pe)[kMetadataSize - 1] = mark;
    memory.board()[static_cast<std::size_t>(pe + 1) * kBoardShare - 1] = mark;
    if (auto met = bootstrap.barrier(); !met) {
      return met.error().text;
    }
    for (int peer = 0; peer < kPes; ++peer) {
      const auto expected = static_cast<std::byte>(peer + 1);
      if (memory.heap(peer)[0] != expected || memory.heap(peer)[memory.heap_size() - 1] != expected) {
        return "heap";
      }
      if (memory.metadata(peer)[0] != expected || memory.metadata(peer)[kMetadataSize - 1] != expected) {
        return "areas";
      }
      if (memory.board()[static_cast<std::size_t>(peer + 1) * kBoardShare - 1] != expected) {
        return "board";
      }
    }
    return "";
  };
  EXPECT_THAT(with_memory(
                  kPes, [](int) { return 3 * kMiB; }, body),
              Each(IsEmpty()));
}

TEST(NodeMemory, PlacesHeapsInARunAndMetadataBeforeTheBoard) {
  SingleBootstrap bootstrap;
  const auto memory = NodeMemory::create(bootstrap, 1);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_EQ(memory->heap_size(), kHeapAlignment) << "rounded up";
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->heap(0)) % kHeapAlignment, 0U);
  EXPECT_EQ(memory->heap(1), memory->heap(0) + memory->heap_size());
  EXPECT_EQ(memory->board(), memory->metadata(0) + kMetadataSize);
}

TEST(NodeMemory, AlignsEachPesOwnHeapUpToItsSize) {
  const auto body = [](int pe, Bootstrap& /*bootstrap*/, NodeMemory& memory) -> std::string {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.heap(pe));
    return address % (64 * kMiB) == 0 ? "" : "PE " + std::to_string(pe) + ": " + std::to_string(address);
  };
  EXPECT_THAT(with_memory(
                  4, [](int) { return 98 * kMiB; }, body),
              Each(IsEmpty()));
}

TEST(NodeMemory, EndsWithGlobalsThatCanBeMappedAgain) {
  SingleBootstrap bootstrap;
  constexpr std::size_t kGlobals = 64 << 10;
  const auto memory = NodeMemory::create(bootstrap, 1, kGlobals);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_EQ(memory->globals(0), memory->board() + kBoardShare);
  EXPECT_EQ(memory->globals(1), memory->globals(0) + kGlobals);
  auto* again = static_cast<std::byte*>(
      ::mmap(nullptr, kGlobals, PROT_READ, MAP_SHARED, memory->file(), static_cast<off_t>(memory->globals_offset(0))));
  ASSERT_NE(static_cast<void*>(again), MAP_FAILED);
  memory->globals(0)[kGlobals - 1] = std::byte{7};
  EXPECT_EQ(again[kGlobals - 1], std::byte{7});
  ::munmap(again, kGlobals);
}

TEST(NodeMemory, IsTakenOverWithZerosInThePartsOfOnePe) {
  SingleBootstrap bootstrap;
  const auto memory = NodeMemory::create(bootstrap, kMiB);
  ASSERT_TRUE(memory) << memory.error().text;
  memory->heap(0)[0] = memory->metadata(0)[0] = memory->board()[0] = std::byte{7};
  const auto again = [&](std::size_t size) {
    const auto& files = memory->files();
    return NodeMemory::take_over(
        bootstrap, {base::UniqueFd(::dup(files.heaps.get())), base::UniqueFd(::dup(files.areas.get()))}, size, 0, {});
  };
  const auto taken = again(kMiB);
  ASSERT_TRUE(taken) << taken.error().text;
  EXPECT_EQ(memory->heap(0)[0], std::byte{0});
  EXPECT_EQ(memory->metadata(0)[0], std::byte{0});
  EXPECT_EQ(taken->board()[0], std::byte{7}) << "shared by all";
  taken->heap(0)[1] = std::byte{8};
  EXPECT_EQ(memory->heap(0)[1], std::byte{8});
  EXPECT_FALSE(again(64 * kMiB)) << "another size than the others have";
}

TEST(NodeMemory, CanBeMadeAgainWithAnotherSize) {
  const auto job = std::make_shared<const JobMemory>(JobMemory::create(2).value());
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    for (const std::size_t size : {2 * kMiB, 64 * kMiB, 4 * kMiB}) {
      auto bootstrap = LocalBootstrap::join(job, pe).value();
      auto memory = NodeMemory::create(*bootstrap, size);
      if (!memory) {
        return memory.error().text;
      }
      if (memory->heap(pe)[0] != std::byte{0}) {
        return "what an earlier time left";
      }
      memory->heap(pe)[0] = std::byte{1};
      bootstrap->leave();
    }
    return "";
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

TEST(NodeMemory, NamesPesThatAskedForAnotherSize) {
  const auto texts = with_memory(
      5, [](int pe) { return pe == 1 ? 2 * kMiB : 4 * kMiB; }, nothing);
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("PE 1 asks for 2 MiB, PEs 0, 2-4 ask for 4 MiB"),
                                HasSubstr("SHMEM_SYMMETRIC_SIZE"))));
}

TEST(NodeMemory, RefusesAHeapOfSizeZero) {
  EXPECT_THAT(errors_of(2, 0), Each(AllOf(HasSubstr("0 bytes"), HasSubstr("SHMEM_SYMMETRIC_SIZE"))));
}

TEST(NodeMemory, RefusesAHeapLargerThanTheMachine) {
  const auto expected = AllOf(HasSubstr("shmem: PE 0: a symmetric heap of"), HasSubstr("is more than the memory"),
                              HasSubstr("SHMEM_SYMMETRIC_SIZE"));
  EXPECT_THAT(errors_of(2, memory_limit().bytes + 1), Each(expected));
  EXPECT_THAT(errors_of(2, std::numeric_limits<std::size_t>::max()), Each(expected));
}

TEST(NodeMemory, AllowsMoreHeapsThanTheMachineHasMemory) {
  const std::size_t half = memory_limit().bytes / 2;
  EXPECT_THAT(errors_of(8, half), Each(IsEmpty()));
}

/// The errors of three PEs when PE `limited` runs with a resource limit.
std::vector<std::string> with_limit(int limited, int resource, rlim_t value) {
  const auto job = std::make_shared<const JobMemory>(JobMemory::create(3).value());
  return in_processes(3, [&](int pe) -> std::string {
    auto bootstrap = LocalBootstrap::join(job, pe).value();
    const rlimit limit{value, value};
    if (pe == limited && ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) {
      return "setrlimit";
    }
    auto memory = NodeMemory::create(*bootstrap, 4 * kMiB);
    return memory ? "went well" : memory.error().text;
  });
}

TEST(NodeMemory, TellsAllPesWhyTheLeaderCannotCreateIt) {
  EXPECT_THAT(with_limit(0, RLIMIT_FSIZE, kMiB),
              Each(AllOf(HasSubstr("shmem: PE 0: a symmetric heap of 4 MiB for each of 3 PEs"), HasSubstr("ulimit -f"),
                         HasSubstr("SHMEM_SYMMETRIC_SIZE"))));
}

TEST(MemoryLimit, TellsWhetherMemoryIsLockedWhenItIsMapped) {
  if (test_support::kSanitized || test_support::kEmulated) {
    GTEST_SKIP() << "sanitizers leave mlockall out, and qemu-user locks memory of its own";
  }
  const auto texts = testing::in_processes(1, [](int) -> std::string {
    std::string seen = locks_new_memory() ? "before; " : "";
    if (::mlockall(MCL_FUTURE | MCL_ONFAULT) != 0) {
      return "cannot";
    }
    seen += locks_new_memory() ? "on fault; " : "";
    const bool locked = ::mlockall(MCL_FUTURE) == 0;
    const bool found = locks_new_memory();
    ::munlockall();
    return seen + (locked && !found ? "not found" : "");
  });
  if (texts[0] == "cannot") {
    GTEST_SKIP() << "this process may not lock memory";
  }
  EXPECT_EQ(texts[0], "");
}

TEST(NodeMemory, TellsAllPesWhichAddressSpaceIsTooSmall) {
  if (test_support::kEmulated) {
    GTEST_SKIP() << "qemu-user does not limit a program's memory";
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs more address space than any limit leaves";
#endif
  EXPECT_THAT(with_limit(1, RLIMIT_AS, 100 * kMiB),
              Each(AllOf(HasSubstr("shmem: PE 1: a symmetric heap of 4 MiB for each of 3 PEs"), HasSubstr("ulimit -v"),
                         HasSubstr("this process may have 100 MiB"), HasSubstr("SHMEM_SYMMETRIC_SIZE"))));
}

TEST(NodeMemory, TellsAllPesWhyOneCannotFetchIt) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs file descriptors of its own";
#endif
  EXPECT_THAT(with_limit(1, RLIMIT_NOFILE, 0),
              Each(AllOf(HasSubstr("shmem: PE 1: "), HasSubstr("Too many open files"))));
}

TEST(Memfd, CannotBeShrunkOrGrown) {
  const auto fd = base::create_memfd("test", kMiB).value();
  EXPECT_TRUE(base::check_memfd(fd.get(), kMiB));
  EXPECT_FALSE(base::check_memfd(fd.get(), kMiB + 1));
  EXPECT_NE(::ftruncate(fd.get(), 0), 0);
  EXPECT_NE(::ftruncate(fd.get(), 2 * kMiB), 0);
}

TEST(Mapping, ReportsHowMuchCouldNotBeMapped) {
  const auto fd = base::create_memfd("test", kMiB).value();
  for (const std::size_t alignment : {std::size_t{1}, kHeapAlignment}) {
    const auto mapping = base::Mapping::share(fd.get(), std::size_t{1} << 60, alignment);
    ASSERT_FALSE(mapping);
    EXPECT_THAT(mapping.error().text, AllOf(HasSubstr("GiB"), HasSubstr("Cannot allocate memory")));
  }
}

TEST(SizeText, UsesTheLargestUnitThatIsExact) {
  EXPECT_EQ(base::size_text(0), "0 bytes");
  EXPECT_EQ(base::size_text(1), "1 byte");
  EXPECT_EQ(base::size_text(1025), "1025 bytes");
  EXPECT_EQ(base::size_text(512 << 10), "512 KiB");
  EXPECT_EQ(base::size_text(3 * kMiB), "3 MiB");
  EXPECT_EQ(base::size_text(kMiB << 10), "1 GiB");
}

class CgroupLimit : public ::testing::Test {
 protected:
  CgroupLimit() {
    write("/proc/self/mountinfo",
          "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
          "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory");
  }
  void write(const std::string& file, const std::string& text) const {
    const std::string path = root_.path() + file;
    test_support::run({"mkdir", "-p", path.substr(0, path.rfind('/'))});
    std::ofstream(path) << text << "\n";
  }
  void write_limit(const std::string& file, const std::string& text) const { write("/sys/fs/cgroup/" + file, text); }
  /// `membership`: the text of /proc/self/cgroup.
  [[nodiscard]] std::optional<std::size_t> limit(const std::string& membership) const {
    write("/proc/self/cgroup", membership);
    return cgroup_memory_limit(root_.path());
  }
  [[nodiscard]] std::size_t left(const std::string& membership) const {
    write("/proc/self/cgroup", membership);
    return memory_left(root_.path());
  }
  [[nodiscard]] std::optional<std::size_t> swap_limit(const std::string& membership) const {
    write("/proc/self/cgroup", membership);
    return cgroup_swap_limit(root_.path());
  }

 private:
  test_support::TempDir root_;
};

TEST_F(CgroupLimit, IsTheSmallestOnTheWayToTheRoot) {
  write_limit("a/b/memory.max", "3000");
  write_limit("a/memory.max", "2000");
  write_limit("memory.max", "max");
  EXPECT_EQ(limit("0::/a/b\n"), 2000U);
  EXPECT_EQ(limit("0::/a\n"), 2000U);
  EXPECT_EQ(limit("0::/\n"), std::nullopt);
}

TEST_F(CgroupLimit, IsThatOfTheRootIfThePathIsTheHosts) {
  write_limit("memory.max", "1000");
  EXPECT_EQ(limit("0::/docker/0123456789\n"), 1000U);
}

TEST_F(CgroupLimit, IncludesTheLimitOfSwap) {
  write_limit("a/memory.max", "2000");
  write_limit("a/memory.swap.max", "0");
  EXPECT_EQ(swap_limit("0::/a\n"), 0U);
  write_limit("a/memory.swap.max", "max");
  EXPECT_EQ(swap_limit("0::/a\n"), std::nullopt);
  EXPECT_EQ(swap_limit("5:memory:/a\n"), std::nullopt);
}

TEST_F(CgroupLimit, LeavesWhatIsNotTaken) {
  write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8 kB");
  EXPECT_EQ(left("0::/\n"), 8192U);
  write_limit("a/b/memory.max", "max");
  write_limit("a/memory.max", "6000");
  write_limit("a/memory.current", "5000");
  write_limit("a/memory.stat", "anon 1000\nfile 4000\nshmem 3000");
  EXPECT_EQ(left("0::/a/b\n"), 2000U) << "pages of files can be taken back, those of shared memory cannot";
  write_limit("a/memory.current", "7500");
  EXPECT_EQ(left("0::/a/b\n"), 0U);
  write_limit("memory/job/memory.limit_in_bytes", "4000");
  write_limit("memory/job/memory.usage_in_bytes", "3000");
  write_limit("memory/job/memory.stat", "cache 1\ntotal_cache 500\ntotal_shmem 400");
  EXPECT_EQ(left("5:memory:/job\n"), 1100U);
}

TEST_F(CgroupLimit, WorksWithVersion1) {
  write_limit("memory/job/memory.limit_in_bytes", "4000");
  EXPECT_EQ(limit("12:cpu,cpuacct:/job\n5:memory:/job\n1:name=systemd:/job\n"), 4000U);
  EXPECT_EQ(limit("12:cpu,cpuacct:/job\n"), std::nullopt);
  EXPECT_EQ(limit("nonsense\n\n"), std::nullopt);
}

}  // namespace
}  // namespace shmem
