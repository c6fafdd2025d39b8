// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/copy.hpp"

#include <gmock/gmock.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "shmem/memory/cached_copy.hpp"

namespace {

constexpr std::size_t kMargin = 128;
constexpr std::byte kUntouched{0xA5};

using Copy = void (*)(void*, const void*, std::size_t);

class CopyTest : public testing::TestWithParam<Copy> {};

std::vector<std::byte> numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i * 131) ^ (i >> 8));
  }
  return bytes;
}

/// Copies between the given offsets from a line and checks every byte of the destination and around it.
void expect_exact_copy(Copy copy, std::size_t to_offset, std::size_t from_offset, std::size_t size) {
  const std::vector<std::byte> source = numbered(kMargin + from_offset + size);
  std::vector<std::byte> destination(2 * kMargin + to_offset + size, kUntouched);
  const std::size_t to = kMargin + to_offset;
  copy(destination.data() + to, source.data() + kMargin + from_offset, size);
  std::vector<std::byte> expected(destination.size(), kUntouched);
  std::copy_n(source.data() + kMargin + from_offset, size, expected.data() + to);
  if (destination != expected) {
    const auto wrong = std::mismatch(expected.begin(), expected.end(), destination.begin()).first - expected.begin();
    FAIL() << "byte " << wrong - static_cast<std::ptrdiff_t>(to) << " of " << size << " bytes from offset "
           << from_offset << " to " << to_offset;
  }
}

TEST_P(CopyTest, CopiesEverySmallSizeAtEveryAlignmentOfTheDestination) {
  for (std::size_t offset = 0; offset < 64; ++offset) {
    for (std::size_t size = 0; size <= 200; ++size) {
      ASSERT_NO_FATAL_FAILURE(expect_exact_copy(GetParam(), offset, (offset * 7) % 64, size));
    }
  }
}

TEST_P(CopyTest, CopiesLargeBlocksThatBeginAndEndInsideALine) {
  for (const std::size_t size : {shmem::kStreamingFrom - 1, shmem::kStreamingFrom, std::size_t{200'003}}) {
    for (const std::size_t offset : {0U, 1U, 15U, 16U, 33U, 63U}) {
      ASSERT_NO_FATAL_FAILURE(expect_exact_copy(GetParam(), offset, 63 - offset, size));
    }
  }
}

TEST_P(CopyTest, CopiesVectorsAtEveryPairOfAlignments) {
  for (const std::size_t size : {192U, 223U, 319U, 320U, 321U, 2048U, 4129U}) {
    for (std::size_t to = 0; to < 64; ++to) {
      for (std::size_t from = 0; from < 64; from += size < 1000 ? 1 : 7) {
        ASSERT_NO_FATAL_FAILURE(expect_exact_copy(GetParam(), to, from, size));
      }
    }
  }
}

TEST_P(CopyTest, AllowsNullPointersIfTheSizeIsZero) {
  GetParam()(nullptr, nullptr, 0);
}

/// Copies in pieces of different sizes and alignments.
void copy_in_pieces(void* destination, const void* source, std::size_t size) {
  shmem::BatchCopy batch;
  std::size_t piece = 1;
  for (std::size_t done = 0; done < size; piece = piece * 5 % 9973) {
    const std::size_t now = std::min(piece, size - done);
    batch.add(static_cast<std::byte*>(destination) + done, static_cast<const std::byte*>(source) + done, now);
    done += now;
  }
  batch.finish();
}

/// The library's, if the processor has no such vectors.
template <shmem::CopyRoutine Routine>
void copy_by_routine(void* destination, const void* source, std::size_t size) {
  static const bool can = shmem::CopyProcessor::here().avx2;
  if (size != 0) {
    shmem::copy_by(can ? Routine : shmem::CopyRoutine::kLibrary, destination, source, size);
  }
}

constexpr const char* kCopyNames[] = {"ChosenBySize", "Streaming", "InPieces", "Cached", "Ascending", "Descending"};
INSTANTIATE_TEST_SUITE_P(Ways, CopyTest,
                         testing::Values(shmem::copy_bytes, shmem::copy_streaming, copy_in_pieces, shmem::copy_cached,
                                         copy_by_routine<shmem::CopyRoutine::kAscending>,
                                         copy_by_routine<shmem::CopyRoutine::kDescending>),
                         [](const testing::TestParamInfo<Copy>& way) { return kCopyNames[way.index]; });

constexpr std::uintptr_t kPage = 4096;
constexpr shmem::CopyProcessor kAmdDebian12{.amd = true, .avx2 = true, .erms = true, .family = 25, .glibc = 36};

TEST(CopyRoutine, OfAmdAndAnOldLibraryDependsOnTheDistanceInThePage) {
  using shmem::CopyRoutine;
  const auto chosen = [](std::uintptr_t to, std::uintptr_t from) {
    return shmem::copy_routine(kAmdDebian12, 32768, 32768, 100 * kPage + to, 300 * kPage + from);
  };
  for (const std::uintptr_t ahead : {1U, 16U, 63U, 64U, 255U}) {
    EXPECT_EQ(chosen(ahead, 0), CopyRoutine::kDescending) << ahead;
    EXPECT_EQ(chosen(5 * kPage + ahead - 16, kPage - 16), CopyRoutine::kDescending) << ahead;
  }
  for (const std::uintptr_t ahead : {0U, 256U, 2048U, 4080U, 4095U}) {
    EXPECT_EQ(chosen(ahead, 0), CopyRoutine::kAscending) << ahead;
  }
}

TEST(CopyRoutine, OfAmdAndAnOldLibraryIsTheLibraryWhereThatUsesVectors) {
  const auto chosen = [](std::size_t size) { return shmem::copy_routine(kAmdDebian12, size, size, 16, 0); };
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{64}, std::size_t{2112}, (std::size_t{1} << 20) + 1, std::size_t{16} << 20}) {
    EXPECT_EQ(chosen(size), shmem::CopyRoutine::kLibrary) << size;
  }
  for (const std::size_t size : {std::size_t{2113}, std::size_t{4096}, std::size_t{24577}, std::size_t{1} << 20}) {
    EXPECT_EQ(chosen(size), shmem::CopyRoutine::kDescending) << size;
  }
}

TEST(CopyRoutine, OfNewerAmdIsTheLibraryBeyondTheFirstCache) {
  for (const int family : {26, 27}) {
    shmem::CopyProcessor newer = kAmdDebian12;
    newer.family = family;
    const auto chosen = [&](std::size_t size, std::uintptr_t to) {
      return shmem::copy_routine(newer, size, size, to, 0);
    };
    for (const std::size_t size : {2113U, 16384U, 24576U}) {
      EXPECT_EQ(chosen(size, 16), shmem::CopyRoutine::kDescending) << size;
      EXPECT_EQ(chosen(size, 0), shmem::CopyRoutine::kAscending) << size;
    }
    for (const std::size_t size : {2112U, 24577U, 32768U, 1U << 20}) {
      EXPECT_EQ(chosen(size, 16), shmem::CopyRoutine::kLibrary) << size;
    }
  }
}

TEST(CopyRoutine, OfAPartDependsOnTheWholeWhereTheFirstCacheDoes) {
  shmem::CopyProcessor newer = kAmdDebian12;
  newer.family = 26;
  constexpr std::size_t kPart = 4096;
  constexpr std::size_t kWhole = std::size_t{2} << 20;
  EXPECT_EQ(shmem::copy_routine(newer, kPart, kWhole, 16, 0), shmem::CopyRoutine::kLibrary);
  EXPECT_EQ(shmem::copy_routine(kAmdDebian12, kPart, kWhole, 16, 0), shmem::CopyRoutine::kDescending);
}

TEST(CopyRoutine, OfOtherProcessorsIsTheLibrary) {
  const struct {
    const char* name = nullptr;
    shmem::CopyProcessor processor;
  } others[] = {
      {"AMD, Debian 13", {.amd = true, .avx2 = true, .erms = true, .family = 25, .glibc = 41}},
      {"AMD, glibc 2.40", {.amd = true, .avx2 = true, .erms = true, .family = 25, .glibc = 40}},
      {"AMD without ERMS", {.amd = true, .avx2 = true, .erms = false, .family = 25, .glibc = 36}},
      {"AMD without AVX2", {.amd = true, .avx2 = false, .erms = true, .family = 25, .glibc = 36}},
      {"Intel", {.amd = false, .avx2 = true, .erms = true, .family = 6, .glibc = 36}},
      {"arm64", {.amd = false, .avx2 = false, .erms = false, .family = 0, .glibc = 36}},
  };
  for (const auto& other : others) {
    for (const std::size_t size : {2113U, 32768U, 1U << 20}) {
      for (const std::uintptr_t ahead : {0U, 16U, 4080U}) {
        EXPECT_EQ(shmem::copy_routine(other.processor, size, size, kPage + ahead, 0), shmem::CopyRoutine::kLibrary)
            << other.name << ", " << size << " bytes, " << ahead;
      }
    }
  }
}

// Other builds have no vectors of their own, and do not ask.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
TEST(CopyRoutine, KnowsTheFamilyOfThisProcessor) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("cpu family")) {
      EXPECT_EQ(std::to_string(shmem::CopyProcessor::here().family), line.substr(line.find(':') + 2));
      return;
    }
  }
  GTEST_SKIP() << "the kernel tells no family";
}
#endif

TEST(CopyRoutine, KnowsTheLibraryOfThisProcess) {
#ifdef __GLIBC__
  EXPECT_EQ("2." + std::to_string(shmem::CopyProcessor::here().glibc),
            std::string(gnu_get_libc_version()).substr(0, 4));
#endif
}

TEST(MoveCached, CopiesOverlappingBytesEitherWay) {
  constexpr std::size_t kSize = 5000;
  for (const std::size_t distance : {0U, 1U, 31U, 2048U, 4999U, 5000U}) {
    const std::vector<std::byte> before = numbered(kSize + distance);
    auto up = before;
    shmem::move_cached(up.data() + distance, up.data(), kSize);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + kSize, up.begin() + static_cast<std::ptrdiff_t>(distance)));
    auto down = before;
    shmem::move_cached(down.data(), down.data() + distance, kSize);
    EXPECT_TRUE(std::equal(down.begin(), down.begin() + kSize, before.begin() + static_cast<std::ptrdiff_t>(distance)));
  }
  shmem::move_cached(nullptr, nullptr, 0);
}

TEST(BatchCopy, CopiesEverythingByItsEndAndCanBeUsedAgain) {
  const std::vector<std::byte> source = numbered(15'000);
  std::vector<std::byte> destination(source.size());
  shmem::BatchCopy batch;
  batch.finish();
  for (std::size_t at = 0; at < source.size(); at += 5000) {
    batch.add(destination.data() + at, source.data() + at, 5000);
    batch.finish();
    EXPECT_TRUE(
        std::equal(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at + 5000), destination.begin()))
        << "after " << at + 5000 << " bytes";
  }
}

/// Copies more than any cache holds, so that the batch switches to streaming, at a point that differs between runs.
TEST(BatchCopy, CopiesScatteredPiecesExactlyWithAnyMethod) {
  constexpr std::size_t kRoom = 4159;  // per piece; pieces begin at all offsets in a line
  constexpr std::size_t kPieces = 2000;
  const std::vector<std::byte> source = numbered(kRoom * kPieces);
  std::vector<std::byte> destination(source.size(), kUntouched);
  const auto size_of = [](std::size_t piece) { return piece * 67 % (kRoom - 1); };
  shmem::BatchCopy batch;
  for (std::size_t i = 0; i < kPieces; ++i) {
    batch.add(destination.data() + kRoom * i, source.data() + kRoom * ((i * 7) % kPieces), size_of(i));
  }
  batch.finish();
  for (std::size_t i = 0; i < kPieces; ++i) {
    const std::byte* to = destination.data() + kRoom * i;
    const std::byte* from = source.data() + kRoom * ((i * 7) % kPieces);
    ASSERT_TRUE(std::equal(to, to + size_of(i), from)) << "piece " << i << " of " << size_of(i) << " bytes";
    ASSERT_TRUE(std::all_of(to + size_of(i), to + kRoom, [](std::byte byte) { return byte == kUntouched; }))
        << "after piece " << i << " of " << size_of(i) << " bytes";
  }
}

}  // namespace
