// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/symmetric_heap.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using shmem::SymmetricHeap;
using shmem_test::run_job;

auto barrier_of(Job& job) {
  return [&job] { return job.bootstrap->barrier(); };
}

TEST(SymmetricHeap, GivesAllPesTheSameOffset) {
  std::array<std::ptrdiff_t, 3> offset{};
  run_job(3, [&](Job& job) {
    SymmetricHeap heap(job, barrier_of(job));
    ASSERT_TRUE(heap.allocate(100, 64, false));
    auto* block = static_cast<std::byte*>(heap.allocate(1000, 4096, false).value());
    offset[static_cast<std::size_t>(job.me)] = block - job.memory.heap(job.me);
    EXPECT_EQ(job.translate(block, job.me), block);
  });
  EXPECT_EQ(offset[0], offset[1]);
  EXPECT_EQ(offset[0], offset[2]);
  EXPECT_EQ(offset[0] % 4096, 0);
}

TEST(SymmetricHeap, TellsEveryPeWhoAskedForAnotherSize) {
  run_job(3, [&](Job& job) {
    SymmetricHeap heap(job, barrier_of(job));
    const auto block = heap.allocate(job.me == 1 ? 128 : 64, 64, false);
    ASSERT_FALSE(block);
    EXPECT_NE(block.error().text.find("PE 0 allocates 64 bytes"), std::string::npos) << block.error().text;
    EXPECT_NE(block.error().text.find("PE 1 allocates 128 bytes"), std::string::npos) << block.error().text;
    EXPECT_EQ(heap.stats().used, 0U) << "nothing was done";
    EXPECT_TRUE(heap.allocate(64, 64, false)) << "and the heap is still of use";
  });
}

TEST(SymmetricHeap, TellsEveryPeWhoFreedWhatOthersDidNot) {
  run_job(2, [&](Job& job) {
    SymmetricHeap heap(job, barrier_of(job));
    void* first = heap.allocate(64, 64, false).value();
    void* second = heap.allocate(64, 64, false).value();
    const auto ok = heap.release(job.me == 0 ? first : second);
    ASSERT_FALSE(ok);
    EXPECT_NE(ok.error().text.find("PE 1 frees offset"), std::string::npos) << ok.error().text;
  });
}

TEST(SymmetricHeap, SaysWhatIsUsedAndWhatToSetWhenItIsFull) {
  run_job(2, [&](Job& job) {
    SymmetricHeap heap(job, barrier_of(job));
    for (const std::size_t size : {std::size_t{1} << 40, SIZE_MAX, SIZE_MAX - 63}) {
      const auto block = heap.allocate(size, 64, false);
      ASSERT_FALSE(block);
      EXPECT_EQ(block.error().code, std::errc::not_enough_memory);
      EXPECT_NE(block.error().text.find("SHMEM_SYMMETRIC_SIZE"), std::string::npos);
    }
  });
}

TEST(SymmetricHeap, RefusesAlignmentsThatAreNoPowersOfTwo) {
  run_job(2, [&](Job& job) {
    SymmetricHeap heap(job, barrier_of(job));
    for (const std::size_t alignment : {0U, 1U, 4U, 24U, 100U}) {
      EXPECT_EQ(heap.allocate(64, alignment, false).error().code, std::errc::invalid_argument) << alignment;
    }
  });
}

TEST(SymmetricHeap, SizeZeroIsNullAndStillCollective) {
  run_job(2, [&](Job& job) {
    SymmetricHeap heap(job, barrier_of(job));
    EXPECT_EQ(heap.allocate(0, 64, false).value(), nullptr);
    EXPECT_TRUE(heap.release(nullptr));
  });
}

TEST(SymmetricHeap, RefusesToFreeWhatIsNoBlock) {
  run_job(1, [&](Job& job) {
    SymmetricHeap heap(job, barrier_of(job));
    int local = 0;
    auto* block = static_cast<std::byte*>(heap.allocate(256, 64, false).value());
    EXPECT_FALSE(heap.release(&local));
    EXPECT_FALSE(heap.release(block + 64));
    EXPECT_TRUE(heap.release(block));
    EXPECT_FALSE(heap.release(block)) << "a second time";
  });
}

TEST(SymmetricHeap, ZeroesReusedMemoryWhenAsked) {
  run_job(1, [&](Job& job) {
    SymmetricHeap heap(job, barrier_of(job));
    void* block = heap.allocate(128, 64, false).value();
    std::memset(block, 0xff, 128);
    ASSERT_TRUE(heap.release(block));
    const auto* again = static_cast<const unsigned char*>(heap.allocate(128, 64, true).value());
    EXPECT_EQ(static_cast<const void*>(again), block);
    EXPECT_TRUE(std::all_of(again, again + 128, [](unsigned char byte) { return byte == 0; }));
  });
}

}  // namespace
