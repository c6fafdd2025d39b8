// SPDX-License-Identifier: Apache-2.0
// Merging the lines of several PEs into one stream, and writing it to a reader that is slow or gone.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "shmem/launcher/streams.hpp"

namespace shmem::launcher {
namespace {

using ::testing::EndsWith;

constexpr Lines::Style kPlain{};
constexpr Lines::Style kTags{.tags = true, .on_terminal = false};
constexpr Lines::Style kTerminal{.tags = false, .on_terminal = true};

TEST(Lines, WaitForTheirEnd) {
  Lines lines(kPlain, 2);
  std::string out;
  lines.add(0, "one ", out);
  lines.add(1, "two\nthr", out);
  EXPECT_EQ(out, "two\n");
  EXPECT_TRUE(lines.is_waiting(0));
  lines.add(0, "line\n", out);
  lines.add(1, "ee\n", out);
  EXPECT_EQ(out, "two\none line\nthree\n");
  EXPECT_FALSE(lines.is_waiting(0));
}

TEST(Lines, KeepAllBytesUnchanged) {
  Lines lines(kPlain, 2);
  std::string out;
  const std::string bytes("\0\n\xff\r\n\n", 6);
  lines.add(0, bytes + "end", out);
  lines.release(0, out);
  lines.release(1, out);
  lines.add(1, "next\n", out);
  EXPECT_EQ(out, bytes + "endnext\n") << "nothing is added";
}

TEST(Lines, ArePassedOnInPiecesIfLong) {
  Lines lines(kPlain, 1);
  std::string out;
  const std::string half(Lines::kLongest / 2 + 1, 'x');
  lines.add(0, half, out);
  EXPECT_EQ(out, "");
  lines.add(0, half, out);
  EXPECT_EQ(out, half + half);
  lines.add(0, "\n", out);
  EXPECT_EQ(out, half + half + "\n");
}

TEST(Lines, GetTags) {
  Lines lines(kTags, 12);
  std::string out;
  lines.add(11, "a\n\nb", out);
  lines.add(0, "c\n", out);
  lines.release(11, out);
  lines.add(11, "b\nd\n", out);
  EXPECT_EQ(out, "[11] a\n[11] \n[0] c\n[11] bb\n[11] d\n");
}

TEST(Lines, NeverStartAfterAnUnfinishedTaggedLineOfAnotherPe) {
  Lines lines(kTags, 2);
  std::string out;
  lines.add(0, "begun", out);
  lines.release(0, out);
  lines.add(1, "x\n", out);
  lines.add(0, "end\n", out);
  EXPECT_EQ(out, "[0] begun\n[1] x\n[0] end\n");
}

TEST(Lines, NeverStartAfterAnUnfinishedLineOfAnotherPeOnATerminal) {
  Lines lines(kTerminal, 2);
  std::string out;
  lines.add(0, "name? ", out);
  EXPECT_EQ(out, "");
  lines.release(0, out);
  EXPECT_EQ(out, "name? ");
  lines.add(0, "again? ", out);
  lines.release(0, out);
  lines.add(1, "x\n", out);
  EXPECT_EQ(out, "name? again? \nx\n");
}

TEST(Lines, OfTheLauncherStartANewLine) {
  for (const auto& style : {kPlain, kTags, kTerminal}) {
    Lines lines(style, 1);
    std::string out;
    lines.add(0, "begun", out);
    lines.release(0, out);
    lines.add_own("oshrun: so\n", out);
    EXPECT_THAT(out, EndsWith("begun\noshrun: so\n"));
  }
}

class SinkTest : public ::testing::Test {
 protected:
  SinkTest() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      std::abort();
    }
    read_.reset(ends[0]);
    write_.reset(ends[1]);
  }
  [[nodiscard]] std::size_t read_all(int fd) const {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    std::string buffer(1 << 20, '\0');
    std::size_t sum = 0;
    for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;) {
      sum += static_cast<std::size_t>(got);
    }
    return sum;
  }
  base::UniqueFd read_;
  base::UniqueFd write_;
  const std::string much_ = std::string(std::size_t{1} << 20, 'x');
};

TEST_F(SinkTest, DoesNotWaitForASlowReader) {
  Sink sink(write_.get());
  sink.put(much_);
  EXPECT_TRUE(sink.is_pending());
  EXPECT_EQ(::fcntl(write_.get(), F_GETFL) & O_NONBLOCK, 0) << "other processes share this open file";
  std::size_t read = 0;
  for (int i = 0; i < 1000 && sink.is_pending(); ++i) {
    read += read_all(read_.get());
    sink.flush();
  }
  EXPECT_EQ(read + read_all(read_.get()), much_.size());
  EXPECT_EQ(sink.error(), 0);
}

TEST_F(SinkTest, DoesNotWaitForASocket) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const base::UniqueFd near(ends[0]);
  const base::UniqueFd far(ends[1]);
  Sink sink(near.get());
  sink.put(much_);
  EXPECT_TRUE(sink.is_pending());
  EXPECT_GT(read_all(far.get()), 0U);
}

TEST_F(SinkTest, NoticesThatTheReaderIsGone) {
  ::signal(SIGPIPE, SIG_IGN);
  Sink sink(write_.get());
  sink.put(much_);
  read_.reset();
  sink.flush();
  EXPECT_EQ(sink.error(), EPIPE);
  EXPECT_FALSE(sink.is_pending());
  sink.put("more");
  EXPECT_FALSE(sink.is_pending());
}

}  // namespace
}  // namespace shmem::launcher
