// SPDX-License-Identifier: Apache-2.0
#include "wire/listener.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

#include "wire/strangers.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = wire::Listener::Clock;

class ListenerTest : public testing::Test {
 protected:
  /// How many connections are handed over in one turn.
  std::size_t accept() {
    const std::size_t before = accepted_.size();
    const auto ok = listener_.accept([this](base::UniqueFd socket, const wire::Endpoint& from) {
      EXPECT_EQ(from.address_text(), "127.0.0.1");
      EXPECT_NE(::fcntl(socket.get(), F_GETFL) & O_NONBLOCK, 0);
      accepted_.push_back(std::move(socket));
    });
    refused_ = ok ? std::errc{} : ok.error().code;
    return accepted_.size() - before;
  }
  [[nodiscard]] base::UniqueFd connect() const { return wire::connect_to(place_, Clock::now() + 20s).value(); }

  wire::Endpoint place_ = wire::parse_endpoint("127.0.0.1:0").value();
  wire::Listener listener_{wire::listen_at(place_).value(), 1h};
  std::vector<base::UniqueFd> accepted_;
  std::errc refused_{};
};

TEST_F(ListenerTest, AcceptsSomeInATurn) {
  std::vector<base::UniqueFd> others;
  for (int i = 0; i < wire::Listener::kMostAtOnce + 3; ++i) {
    others.push_back(connect());
  }
  EXPECT_EQ(accept(), std::size_t{wire::Listener::kMostAtOnce});
  EXPECT_EQ(accept(), 3U);
  EXPECT_EQ(accept(), 0U);
  EXPECT_EQ(refused_, std::errc{});
}

TEST_F(ListenerTest, PausesWithoutDescriptors) {
  const base::UniqueFd other = connect();
  const int listening = listener_.fd();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(listening);
  ::close(next);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(accept(), 0U);
  EXPECT_EQ(refused_, std::errc::too_many_files_open);
  EXPECT_EQ(listener_.fd(), -1) << "poll() would return at once";
  ASSERT_TRUE(listener_.paused_until());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(accept(), 0U);
  EXPECT_FALSE(listener_.resume(Clock::now()));
  EXPECT_TRUE(listener_.resume(*listener_.paused_until()));
  EXPECT_FALSE(listener_.resume(Clock::now() + 2h)) << "it does not pause any more";
  EXPECT_EQ(listener_.fd(), listening);
  EXPECT_EQ(accept(), 1U);
}

TEST_F(ListenerTest, TakesNobodyAfterItsEnd) {
  const base::UniqueFd early = connect();
  listener_.close();
  EXPECT_EQ(accept(), 0U);
  EXPECT_EQ(listener_.fd(), -1);
  EXPECT_EQ(wire::connect_to(place_, Clock::now() + 20s).error().code, std::errc::connection_refused);
}

TEST(StrangersInAFlood, TheOldestOfTheLargestGroupGivesWay) {
  const auto one = wire::parse_endpoint("127.0.0.1:1").value();
  const auto same_address = wire::parse_endpoint("127.0.0.1:2").value();
  const auto other = wire::parse_endpoint("127.0.0.2:1").value();
  const auto six = wire::parse_endpoint("[::1]:1").value();
  using Strangers = std::vector<wire::Stranger>;
  EXPECT_EQ(place_to_free(Strangers{{&one, true}}), 0U);
  EXPECT_EQ(place_to_free(Strangers{{&one, true}, {&one, false}, {&same_address, false}}), 1U);
  EXPECT_EQ(place_to_free(Strangers{{&one, false}, {&other, false}, {&six, false}, {&other, false}}), 1U);
  EXPECT_EQ(place_to_free(Strangers{{&one, false}, {&six, true}, {&one, true}, {&six, true}}), 1U);
}

}  // namespace
