// SPDX-License-Identifier: Apache-2.0
// What a member on another node can do to the table of places at which a member looks for others. Needs no UCX.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kv/service/links.hpp"
#include "kv/service/remote_messages.hpp"
#include "tests/unit/kv/exchange_fixture.hpp"
#include "tests/unit/kv/frame_socket.hpp"

namespace {

using namespace shmem::exchange;  // NOLINT(google-build-using-namespace): what the test is about
using exchange_test::kLong;
using shmem::Endpoint;

LinkIdentity identity_of(std::uint64_t id) {
  return {.member = id, .node = id, .version = 1, .messages = kRemoteProtocol, .pid = 1};
}

shmem::Secret secret() {
  return shmem::derive_secret("a secret", "places");
}

/// The links of a member.
class Node {
 public:
  explicit Node(std::uint64_t id) : place_(*shmem::parse_endpoint("127.0.0.1:0")) {
    LinkSelf self{.who = identity_of(id), .slots = 8, .secret = secret(), .address = {std::byte{1}}};
    const std::lock_guard opening(mutex_);
    links_ = *Links::open(place_, std::move(self),
                          {.reader_came =
                               [this](const LinkedReader& reader) {
                                 const std::lock_guard held(mutex_);
                                 links_->welcome(reader.session);
                                 return true;
                               },
                           .reader_left = [](std::uint64_t /*session*/) {},
                           .owner_came =
                               [this](const LinkedOwner& owner) {
                                 const std::lock_guard lock(mutex_);
                                 owners_.insert(owner.who.member);
                                 return true;
                               },
                           .owner_left = [](std::uint64_t /*session*/) {}},
                          counters_);
  }
  [[nodiscard]] const Endpoint& place() const { return place_; }
  void connect(const Endpoint& place) { EXPECT_TRUE(links_->connect({place}, kLong)); }
  bool reads_from(std::uint64_t id) {
    for (int i = 0; i < 5'000; ++i) {
      const std::lock_guard lock(mutex_);
      if (owners_.contains(id)) {
        return true;
      }
      ::usleep(1000);
    }
    return false;
  }

 private:
  Counters counters_;
  std::mutex mutex_;
  std::set<std::uint64_t> owners_;
  Endpoint place_;
  std::unique_ptr<Links> links_;
};

/// A member with the secret that tells its first reader of as many others as it may. At none of the addresses can
/// anyone be.
class Teller {
 public:
  Teller() : place_(*shmem::parse_endpoint("127.0.0.1:0")), listener_(*shmem::listen_at(place_)) {
    thread_ = std::thread([this] { tell(); });
  }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;
  ~Teller() {
    thread_.join();
    EXPECT_TRUE(told_);
  }
  [[nodiscard]] const Endpoint& place() const { return place_; }

 private:
  void tell() {
    pollfd waiting{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&waiting, 1, 20'000), 1);
    auto& socket = socket_.emplace(base::UniqueFd(::accept(listener_.get(), nullptr, nullptr)));
    listener_.reset();  // no other member waits for it
    const auto hello = socket.receive()->head<LinkHello>();
    LinkChallenge challenge;
    challenge.who = identity_of(666);
    challenge.proof = prove_link(secret(), LinkSide::kOwner, *hello, challenge);
    socket.send(kLinkChallenge, challenge);
    ASSERT_EQ(socket.receive()->type, kLinkProof);
    const std::byte address{1};
    socket.send(kLinkWelcome, LinkWelcome{.requests = 1, .slots = 8}, std::span(&address, 1));
    std::vector<WireEndpoint> places(kMostLinkMembers, {.family = 4, .port = 1, .address = {255, 255, 255, 255}});
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i].port = static_cast<std::uint16_t>(1 + i);
    }
    socket.send(*shmem::encode(kLinkMembers, 0, std::as_bytes(std::span(places))));
    told_ = true;
  }

  Endpoint place_;
  base::UniqueFd listener_;
  std::optional<exchange_test::FrameSocket> socket_;
  std::atomic<bool> told_{false};
  std::thread thread_;
};

class ExchangePlaces : public testing::Test {
 protected:
  ExchangePlaces() { member_.connect(teller_.place()); }  // returns once it has tried all that it was told of

  Teller teller_;
  Node member_{1};
};

TEST_F(ExchangePlaces, ASeedIsTakenByAFullTable) {
  const Node seed(2);
  member_.connect(seed.place());
  EXPECT_TRUE(member_.reads_from(2));
}

TEST_F(ExchangePlaces, AMemberThatHasProvedItselfIsTakenByAFullTable) {
  for (const std::uint64_t id : {2, 3}) {
    Node other(id);
    other.connect(member_.place());
    EXPECT_TRUE(other.reads_from(1));
    EXPECT_TRUE(member_.reads_from(id));
  }
}

}  // namespace
