// SPDX-License-Identifier: Apache-2.0
#include "kv/operator/piece_copy.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace shmem::kv {
namespace {

/// An engine that copies as late as it may: only in a wait, and then only what the wait requires. If the caller does
/// not wait, the bytes have not moved; if it fills a buffer too early, wrong bytes are written.
class LazyEngine {
 public:
  void read(std::byte* to, const std::byte* from, std::size_t size, int buffer) {
    begin(reads_, {to, from, size, buffer}, "read");
  }
  void write(std::byte* to, const std::byte* from, std::size_t size, int buffer) {
    begin(writes_, {to, from, size, buffer}, "write");
    overlapped_ = overlapped_ || !reads_.empty();
  }
  void wait_read(int buffer) { end(reads_, buffer); }
  void wait_write(int buffer) { end(writes_, buffer); }

  /// The errors of the caller; "" if none.
  [[nodiscard]] const std::string& fault() const { return fault_; }
  /// Whether a write began while a read was under way.
  [[nodiscard]] bool overlapped() const { return overlapped_; }
  [[nodiscard]] bool idle() const { return reads_.empty() && writes_.empty(); }

 private:
  struct Transfer {
    std::byte* to;
    const std::byte* from;
    std::size_t size;
    int buffer;
  };
  using Queue = std::deque<Transfer>;

  static bool uses(const Queue& queue, int buffer) {
    return std::any_of(queue.begin(), queue.end(), [buffer](const Transfer& one) { return one.buffer == buffer; });
  }
  void begin(Queue& queue, const Transfer& transfer, const char* what) {
    if (uses(reads_, transfer.buffer) || uses(writes_, transfer.buffer)) {
      fault_ += std::string("a ") + what + " of buffer " + std::to_string(transfer.buffer) + ", which is in use; ";
    }
    queue.push_back(transfer);
  }
  static void end(Queue& queue, int buffer) {
    while (uses(queue, buffer)) {
      std::memcpy(queue.front().to, queue.front().from, queue.front().size);
      queue.pop_front();
    }
  }

  Queue reads_;
  Queue writes_;
  std::string fault_;
  bool overlapped_ = false;
};
static_assert(CopyEngine<LazyEngine> && CopyEngine<LocalEngine>);

struct Piece {
  std::size_t to, from, size;
};

/// A row of pieces and its copy in reverse order.
struct Memory {
  explicit Memory(const std::vector<std::size_t>& sizes) {
    std::size_t all = 0;
    for (const std::size_t size : sizes) {
      pieces.push_back({0, all + 1, size});
      all += size + 3;  // the gap between pieces must not change
    }
    for (Piece& piece : pieces) {
      piece.to = all - piece.from - piece.size;
    }
    source.resize(all);
    for (std::size_t i = 0; i < all; ++i) {
      source[i] = static_cast<std::byte>((i * 131) ^ (i >> 8));
    }
    destination.assign(all, std::byte{0xA5});
    expected = destination;
    for (const Piece& piece : pieces) {
      std::copy_n(source.data() + piece.from, piece.size, expected.data() + piece.to);
    }
  }

  template <typename Copy>
  void carry_out(Copy& copy) {
    for (const Piece& piece : pieces) {
      copy.add(destination.data() + piece.to, source.data() + piece.from, piece.size);
    }
    copy.finish();
  }

  std::vector<Piece> pieces;
  std::vector<std::byte> source, destination, expected;
};

constexpr std::size_t kScratch = 256;  // two buffers of half that

std::vector<std::vector<std::size_t>> rows() {
  constexpr std::size_t kBuffer = kScratch / 2;
  return {{},
          {0},
          {1},
          {kBuffer},
          {kBuffer, kBuffer, kBuffer},
          {0, 7, 0, 9, 0},
          {kBuffer + 1, kBuffer - 1},
          {5 * kBuffer + 3, 1, 2 * kBuffer},
          std::vector<std::size_t>(33, 50)};
}

TEST(DoubleBuffer, NeverUsesABufferThatIsInUseAndWaitsForTheLast) {
  for (const auto& sizes : rows()) {
    Memory memory(sizes);
    std::vector<std::byte> scratch(kScratch);
    LazyEngine engine;
    DoubleBuffer copy(engine, scratch);
    memory.carry_out(copy);
    EXPECT_EQ(engine.fault(), "") << testing::PrintToString(sizes);
    EXPECT_TRUE(engine.idle()) << testing::PrintToString(sizes);
    EXPECT_EQ(memory.destination, memory.expected) << testing::PrintToString(sizes);
  }
}

TEST(DoubleBuffer, WritesOnePieceWhileItReadsTheNext) {
  Memory memory({10, 10, 10});
  std::vector<std::byte> scratch(kScratch);
  LazyEngine engine;
  DoubleBuffer copy(engine, scratch);
  memory.carry_out(copy);
  EXPECT_TRUE(engine.overlapped());
}

TEST(DoubleBuffer, CanBeUsedAgainAfterFinish) {
  Memory first({100, 300});
  Memory second({1, 2, 1000});
  std::vector<std::byte> scratch(kScratch);
  LazyEngine engine;
  DoubleBuffer copy(engine, scratch);
  first.carry_out(copy);
  EXPECT_EQ(first.destination, first.expected);
  second.carry_out(copy);
  EXPECT_EQ(second.destination, second.expected);
  EXPECT_EQ(engine.fault(), "");
}

TEST(DoubleBuffer, WorksWithTheSmallestScratch) {
  Memory memory({1, 5, 0, 3});
  std::vector<std::byte> scratch(2);
  LazyEngine engine;
  DoubleBuffer copy(engine, scratch);
  memory.carry_out(copy);
  EXPECT_EQ(engine.fault(), "");
  EXPECT_EQ(memory.destination, memory.expected);
}

class PieceCopyTest : public testing::TestWithParam<Path> {};

TEST_P(PieceCopyTest, CopiesPiecesOfAllSizes) {
  for (const auto& sizes : rows()) {
    Memory memory(sizes);
    std::vector<std::byte> scratch(kScratch);
    PieceCopy copy(GetParam(), scratch);
    memory.carry_out(copy);
    EXPECT_EQ(memory.destination, memory.expected) << testing::PrintToString(sizes);
  }
}

TEST_P(PieceCopyTest, UsesScratchOnlyOnTheScratchPath) {
  Memory memory({500});
  std::vector<std::byte> scratch(kScratch, std::byte{0x5A});
  PieceCopy copy(GetParam(), scratch);
  memory.carry_out(copy);
  const bool untouched = std::all_of(scratch.begin(), scratch.end(), [](std::byte b) { return b == std::byte{0x5A}; });
  EXPECT_EQ(untouched, GetParam() != Path::kScratch);
}

constexpr const char* kNames[] = {"Auto", "Direct", "Scratch"};
INSTANTIATE_TEST_SUITE_P(Paths, PieceCopyTest, testing::Values(Path::kAuto, Path::kDirect, Path::kScratch),
                         [](const testing::TestParamInfo<Path>& path) { return kNames[path.index]; });

}  // namespace
}  // namespace shmem::kv
