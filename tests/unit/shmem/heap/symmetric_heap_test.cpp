// SPDX-License-Identifier: Apache-2.0
#include "shmem/heap/symmetric_heap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using shmem::SymmetricHeap;
using shmem_test::run_job;
using testing::AllOf;
using testing::HasSubstr;

/// `count`: of the barriers that this PE has made.
SymmetricHeap::Rendezvous rendezvous_of(
    Job& job, const std::shared_ptr<std::uint64_t>& count = std::make_shared<std::uint64_t>(0)) {
  return {.barrier =
              [&job, count] {
                ++*count;
                return job.bootstrap->barrier();
              },
          .count = [count] { return *count; }};
}

/// Runs `body` on each PE of a job, with its heap of 4 MiB.
void with_heaps(int pes, const std::function<void(SymmetricHeap&, Job&)>& body) {
  run_job(pes, [&](Job& job) {
    SymmetricHeap heap(job, rendezvous_of(job));
    body(heap, job);
  });
}

TEST(SymmetricHeap, GivesAPeThatLacksBlocksThoseOfTheOthers) {
  run_job(3, [](Job& job) {
    const auto barriers = std::make_shared<std::uint64_t>(0);
    SymmetricHeap heap(job, rendezvous_of(job, barriers));
    void* const first = heap.malloc(100).value();
    void* const second = heap.malloc(5000).value();
    ASSERT_TRUE(heap.free(first));
    SymmetricHeap fresh(job, rendezvous_of(job, barriers));
    SymmetricHeap& mine = job.me == 1 ? fresh : heap;
    if (job.me == 1) {
      std::memset(job.memory.heap(1), 0, 8192);
      fresh.lack_blocks();
    }
    ASSERT_TRUE(mine.regroup());
    EXPECT_EQ(mine.stats().live_blocks, 1U);
    EXPECT_EQ(std::count(job.memory.heap(1), job.memory.heap(1) + 8192, std::byte{0}), 8192);
    const auto again = mine.malloc(64);
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(*again, first);
    EXPECT_TRUE(mine.free(second));
  });
}

TEST(SymmetricHeap, ReportsReleasedBytes) {
  run_job(2, [](Job& job) {
    std::vector<std::span<const std::byte>> released;
    auto rendezvous = rendezvous_of(job);
    rendezvous.released = [&](std::span<const std::byte> block) { released.push_back(block); };
    SymmetricHeap heap(job, std::move(rendezvous));
    const auto* first = static_cast<const std::byte*>(heap.malloc(100).value());
    ASSERT_TRUE(heap.malloc(64));
    const auto* moved = static_cast<const std::byte*>(heap.realloc(const_cast<std::byte*>(first), 1000).value());
    ASSERT_NE(moved, first);
    ASSERT_TRUE(heap.free(const_cast<std::byte*>(moved)));
    ASSERT_TRUE(heap.free(nullptr));
    ASSERT_EQ(released.size(), 2U);
    EXPECT_EQ(released[0].data(), first);
    EXPECT_GE(released[0].size(), 100U);
    EXPECT_EQ(released[1].data(), moved);
    EXPECT_GE(released[1].size(), 1000U);
  });
}

TEST(SymmetricHeap, GivesAllPesTheSameOffset) {
  std::array<std::ptrdiff_t, 3> offset{};
  with_heaps(3, [&](SymmetricHeap& heap, Job& job) {
    ASSERT_TRUE(heap.malloc(100));
    auto* block = static_cast<std::byte*>(heap.align(4096, 1000).value());
    offset[static_cast<std::size_t>(job.me)] = block - job.memory.heap(job.me);
    EXPECT_EQ(job.translate(block, job.me), block);
  });
  EXPECT_EQ(offset[0], offset[1]);
  EXPECT_EQ(offset[0], offset[2]);
  EXPECT_EQ(offset[0] % 4096, 0);
}

TEST(SymmetricHeap, AlignsAddressesUpToTheSizeOfTheHeap) {
  with_heaps(3, [&](SymmetricHeap& heap, Job&) {
    for (std::size_t alignment = 1; alignment <= std::size_t{4} << 20; alignment *= 2) {
      void* block = heap.align(alignment, 1).value();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U) << alignment;
      EXPECT_TRUE(heap.free(block));
    }
    EXPECT_EQ(heap.align(std::size_t{8} << 20, 1).error().code, std::errc::not_enough_memory);
  });
}

TEST(SymmetricHeap, TellsEveryPeWhichPesAskedForSomethingElse) {
  with_heaps(4, [](SymmetricHeap& heap, Job& job) {
    const bool odd = job.me == 2;
    const auto expect = [&](const auto& result, const char* others, const char* mine) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, std::errc::invalid_argument);
      EXPECT_THAT(result.error().text,
                  AllOf(HasSubstr("nothing was done"), HasSubstr(std::string("PEs 0, 1, 3: ") + others),
                        HasSubstr(std::string("PE 2: ") + mine)));
    };
    void* first = heap.malloc(64).value();
    void* second = heap.malloc(64).value();
    expect(heap.malloc(odd ? 128 : 64), "shmem_malloc(64)", "shmem_malloc(128)");
    expect(heap.calloc(odd ? 4 : 2, odd ? 2 : 4), "shmem_calloc(2, 4)", "shmem_calloc(4, 2)");
    expect(heap.align(odd ? 3 : 64, 8), "shmem_align(64, 8)", "shmem_align(3, 8)");
    expect(heap.malloc_with_hints(8, odd ? 0x40 : 1), "shmem_malloc_with_hints(8, 0x1)",
           "shmem_malloc_with_hints(8, 0x40)");
    expect(odd ? heap.align(64, 64) : heap.malloc(64), "shmem_malloc(64)", "shmem_align(64, 64)");
    expect(heap.realloc(odd ? second : first, 100), "shmem_realloc(offset 0, 100)", "shmem_realloc(offset 64, 100)");
    expect(heap.realloc(first, odd ? 101 : 100), "shmem_realloc(offset 0, 100)", "shmem_realloc(offset 0, 101)");
    expect(heap.realloc(odd ? nullptr : first, 9), "shmem_realloc(offset 0, 9)", "shmem_realloc(NULL, 9)");
    expect(heap.free(odd ? second : first), "shmem_free(offset 0)", "shmem_free(offset 64)");
    EXPECT_EQ(heap.stats().used, 128U);
    EXPECT_TRUE(heap.free(first)) << "the heap must still work";
    EXPECT_EQ(heap.malloc(64).value(), first);
  });
}

TEST(SymmetricHeap, AWrongPointerOnOnePeIsAnErrorOnAll) {
  with_heaps(3, [](SymmetricHeap& heap, Job& job) {
    int local = 0;
    auto* block = static_cast<std::byte*>(heap.malloc(256).value());
    const bool odd = job.me == 1;
    const auto foreign = heap.free(odd ? static_cast<void*>(&local) : block);
    ASSERT_FALSE(foreign);
    EXPECT_THAT(foreign.error().text, AllOf(HasSubstr("PEs 0, 2: shmem_free(offset 0)"),
                                            HasSubstr("PE 1: shmem_free(0x"), HasSubstr("not in the symmetric heap")));
    const auto inside = heap.realloc(odd ? block + 64 : block, 10);
    ASSERT_FALSE(inside);
    EXPECT_THAT(inside.error().text, HasSubstr("PE 1: shmem_realloc(offset 64, 10), where no live block begins"));
    EXPECT_EQ(heap.stats().live_blocks, 1U);
  });
}

TEST(SymmetricHeap, NamesThePeThatIsInAnotherRoutine) {
  run_job(3, [](Job& job) {
    const SymmetricHeap::Rendezvous rendezvous = rendezvous_of(job);
    SymmetricHeap heap(job, rendezvous);
    void* block = heap.malloc(64).value();
    if (job.me == 1) {
      ASSERT_TRUE(rendezvous.barrier());  // a barrier of its own
      return;
    }
    const auto ok = heap.free(block);
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().code, std::errc::state_not_recoverable);
    EXPECT_THAT(ok.error().text, AllOf(HasSubstr("not all PEs are in it"), HasSubstr("PE 1: in another routine"),
                                       HasSubstr("PEs 0, 2: shmem_free(offset 0)")));
  });
}

TEST(SymmetricHeap, ReportsAPeThatIsOneBarrierLate) {
  run_job(2, [](Job& job) {
    const SymmetricHeap::Rendezvous rendezvous = rendezvous_of(job);
    SymmetricHeap heap(job, rendezvous);
    const bool late = job.me == 1;
    EXPECT_TRUE(!late || rendezvous.barrier());
    const auto block = heap.malloc(64);  // PE 0's pairs with PE 1's barrier, PE 1's with the barrier below
    EXPECT_TRUE(late || rendezvous.barrier());
    EXPECT_FALSE(block);
  });
}

TEST(SymmetricHeap, ReportsItsUseAndTheVariableToSetWhenItIsFull) {
  with_heaps(2, [](SymmetricHeap& heap, Job&) {
    ASSERT_TRUE(heap.malloc(100));
    for (const std::size_t size : {std::size_t{1} << 40, SIZE_MAX, SIZE_MAX - 63}) {
      const auto block = heap.malloc(size);
      ASSERT_FALSE(block);
      EXPECT_EQ(block.error().code, std::errc::not_enough_memory);
      EXPECT_THAT(block.error().text,
                  AllOf(HasSubstr("shmem_malloc(" + std::to_string(size) + ")"), HasSubstr("it has 4 MiB, 128 bytes"),
                        HasSubstr("largest free block has 4194176 bytes"), HasSubstr("SHMEM_SYMMETRIC_SIZE")));
    }
    EXPECT_THAT(heap.calloc(SIZE_MAX / 2, 3).error().text, AllOf(HasSubstr("shmem_calloc(9223372036854775807, 3)"),
                                                                 HasSubstr("more bytes than can be addressed")));
  });
}

TEST(SymmetricHeap, RoundsAlignmentsUpToPowersOfTwo) {
  with_heaps(2, [](SymmetricHeap& heap, Job&) {
    for (const auto& [alignment, used] : {std::pair<std::size_t, std::size_t>{0, 64},
                                          {63, 64},
                                          {100, 128},
                                          {(std::size_t{1} << 20) + 1, std::size_t{2} << 20}}) {
      ASSERT_TRUE(heap.malloc(64));
      const auto block = heap.align(alignment, 64);
      ASSERT_TRUE(block) << alignment;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*block) % used, 0U) << alignment;
    }
    EXPECT_EQ(heap.align(SIZE_MAX, 64).error().code, std::errc::not_enough_memory);
  });
}

TEST(SymmetricHeap, SizeZeroIsNullWithoutABarrier) {
  with_heaps(2, [](SymmetricHeap& heap, Job& job) {
    if (job.me == 1) {  // the other PE does not make the calls
      EXPECT_EQ(heap.malloc(0).value(), nullptr);
      EXPECT_EQ(heap.malloc_with_hints(0, 3).value(), nullptr);
      EXPECT_EQ(heap.calloc(0, 8).value(), nullptr);
      EXPECT_EQ(heap.calloc(8, 0).value(), nullptr);
      EXPECT_EQ(heap.align(64, 0).value(), nullptr);
      EXPECT_EQ(heap.align(3, 0).value(), nullptr);
      EXPECT_EQ(heap.realloc(nullptr, 0).value(), nullptr);
      EXPECT_TRUE(heap.free(nullptr));
    }
    EXPECT_EQ(heap.stats().live_blocks, 0U);
    EXPECT_TRUE(heap.malloc(8));
  });
}

TEST(SymmetricHeap, RefusesToFreeInvalidPointers) {
  with_heaps(2, [](SymmetricHeap& heap, Job& job) {
    auto* block = static_cast<std::byte*>(heap.malloc(256).value());
    const auto inside = heap.free(block + 64);
    EXPECT_EQ(inside.error().code, std::errc::bad_address);
    EXPECT_THAT(inside.error().text, HasSubstr("it lies in the block of 256 bytes at offset 0"));
    EXPECT_EQ(heap.realloc(block + 64, 8).error().code, std::errc::invalid_argument);
    EXPECT_TRUE(heap.free(block));
    EXPECT_THAT(heap.free(block).error().text, HasSubstr("was it freed before?")) << "freed twice";
    EXPECT_THAT(heap.realloc(block, 8).error().text, HasSubstr("was it freed before?"));
    EXPECT_THAT(heap.free(job.memory.heap(job.me) + job.memory.heap_size()).error().text,
                HasSubstr("not in the symmetric heap"));
  });
}

TEST(SymmetricHeap, ZeroesReusedMemoryWhenAsked) {
  with_heaps(1, [](SymmetricHeap& heap, Job&) {
    void* block = heap.malloc(128).value();
    std::memset(block, 0xff, 128);
    ASSERT_TRUE(heap.free(block));
    const auto* again = static_cast<const unsigned char*>(heap.calloc(16, 8).value());
    EXPECT_EQ(static_cast<const void*>(again), block);
    EXPECT_TRUE(std::all_of(again, again + 128, [](unsigned char byte) { return byte == 0; }));
  });
}

TEST(SymmetricHeap, ReallocKeepsTheContentsInPlaceAndMoved) {
  with_heaps(3, [](SymmetricHeap& heap, Job& job) {
    const auto is_mine = [&](const void* block, std::size_t size) {
      const auto* bytes = static_cast<const unsigned char*>(block);
      return std::all_of(bytes, bytes + size, [&](unsigned char byte) { return byte == job.me + 1; });
    };
    void* block = heap.realloc(nullptr, 1000).value();
    std::memset(block, job.me + 1, 1000);
    EXPECT_EQ(heap.realloc(block, 5000).value(), block) << "the memory after it is free";
    EXPECT_EQ(heap.realloc(block, 1000).value(), block);
    void* fence = heap.malloc(1).value();
    void* moved = heap.realloc(block, 2000).value();
    EXPECT_NE(moved, block);
    EXPECT_TRUE(is_mine(static_cast<std::byte*>(moved) + 1, 999));
    // The move is complete: it does not overwrite what a neighbour puts there after the call.
    const int right = (job.me + 1) % job.size;
    *job.translate(moved, right) = std::byte{77};
    ASSERT_TRUE(job.bootstrap->barrier());
    EXPECT_EQ(*static_cast<std::byte*>(moved), std::byte{77});
    EXPECT_EQ(heap.malloc(1000).value(), block) << "the old block is free";
    EXPECT_FALSE(heap.realloc(moved, SIZE_MAX));
    EXPECT_EQ(heap.realloc(moved, 500).value(), moved) << "a refused call changes nothing";
    EXPECT_EQ(heap.realloc(moved, 0).value(), nullptr);
    EXPECT_TRUE(heap.free(fence));
    EXPECT_EQ(heap.stats().live_blocks, 1U);
  });
}

}  // namespace
