// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/copy.hpp"

#include <gmock/gmock.h>

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

/// Copies between the given offsets from a line and looks at every byte of the destination and around it.
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
    for (const std::size_t offset : {0, 1, 15, 16, 33, 63}) {
      ASSERT_NO_FATAL_FAILURE(expect_exact_copy(GetParam(), offset, 63 - offset, size));
    }
  }
}

TEST_P(CopyTest, AllowsNullPointersForNothing) {
  GetParam()(nullptr, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, CopyTest, testing::Values(shmem::copy_bytes, shmem::copy_streaming),
                         [](const testing::TestParamInfo<Copy>& way) {
                           return way.index == 0 ? "ChosenBySize" : "Streaming";
                         });

}  // namespace
