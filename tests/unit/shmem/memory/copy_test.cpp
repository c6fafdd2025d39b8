// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/copy.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <vector>

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
  for (std::size_t i = 0; i < destination.size(); ++i) {
    const bool inside = i >= to && i < to + size;
    ASSERT_EQ(destination[i], inside ? source[kMargin + from_offset + i - to] : kUntouched)
        << "byte " << i << " of " << size << " bytes from offset " << from_offset << " to " << to_offset;
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

constexpr const char* kCopyNames[] = {"ChosenBySize", "Streaming", "InPieces"};
INSTANTIATE_TEST_SUITE_P(Ways, CopyTest, testing::Values(shmem::copy_bytes, shmem::copy_streaming, copy_in_pieces),
                         [](const testing::TestParamInfo<Copy>& way) { return kCopyNames[way.index]; });

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
