// SPDX-License-Identifier: Apache-2.0
#include "wire/connection.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <vector>

namespace {

constexpr wire::FrameType kType{7};
constexpr std::size_t kMost = std::size_t{1} << 20;

wire::FrameBytes frame_of(const std::string& text) {
  return wire::encode(kType, 0, std::as_bytes(std::span(text)));
}

class ConnectionTest : public testing::Test {
 protected:
  static std::array<base::UniqueFd, 2> make_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    return {base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
  }
  /// The text of the next frame, or "" if there is none.
  static std::string next(wire::Connection& connection) {
    const auto frame = connection.next();
    EXPECT_TRUE(frame) << frame.error().text;
    return frame && *frame ? (*frame)->text(0) : "";
  }

  std::array<base::UniqueFd, 2> ends_ = make_pair();
  wire::Connection here_{std::move(ends_[0]), kMost};
  wire::Connection there_{std::move(ends_[1]), kMost};
};

TEST_F(ConnectionTest, PassesFramesAndTheirSeals) {
  const wire::Secret secret{1, 2, 3};
  ASSERT_TRUE(here_.send(frame_of("plain")));
  here_.seal(wire::Seals(secret, "here", {}));
  ASSERT_TRUE(here_.send(frame_of("sealed")));
  ASSERT_TRUE(here_.send(frame_of("sealed, too")));
  ASSERT_TRUE(there_.read());
  EXPECT_EQ(next(there_), "plain");
  there_.require(wire::Seals(secret, "here", {}));
  EXPECT_EQ(next(there_), "sealed");
  EXPECT_EQ(next(there_), "sealed, too");
  EXPECT_EQ(next(there_), "");
  here_.seal(wire::Seals(secret, "another", {}));
  ASSERT_TRUE(here_.send(frame_of("of another")));
  ASSERT_TRUE(there_.read());
  EXPECT_EQ(there_.next().error().code, std::errc::permission_denied);
}

TEST_F(ConnectionTest, KeepsWhatTheOtherSideDoesNotTake) {
  const auto large = frame_of(std::string(300'000, 'x'));
  std::size_t sent = 0;
  for (; here_.unsent() < 2 * large->size(); ++sent) {
    ASSERT_TRUE(here_.send(large));
  }
  ASSERT_TRUE(here_.send(frame_of("last")));
  std::size_t came = 0;
  for (std::string text; text != "last"; text = next(there_)) {
    came += text.size() == 300'000 ? 1 : 0;
    ASSERT_TRUE(here_.write());
    ASSERT_TRUE(there_.read());
  }
  EXPECT_EQ(came, sent);
  EXPECT_EQ(here_.unsent(), 0U);
}

TEST_F(ConnectionTest, DropsWhatIsNotWanted) {
  ASSERT_TRUE(here_.send(frame_of("first")));
  ASSERT_TRUE(there_.read(false));
  EXPECT_EQ(next(there_), "");
  ASSERT_TRUE(here_.send(frame_of("second")));
  ASSERT_TRUE(there_.read());
  EXPECT_EQ(next(there_), "second");
}

TEST_F(ConnectionTest, SaysThatTheOtherSideHasGone) {
  std::optional<wire::Connection> there(std::move(there_));
  ASSERT_TRUE(here_.read()) << "nothing has come yet";
  there.reset();
  EXPECT_EQ(here_.read().error().code, std::errc::connection_reset);
  EXPECT_FALSE(here_.send(frame_of("in vain")));
  EXPECT_EQ(here_.unsent(), 0U);
}

}  // namespace
