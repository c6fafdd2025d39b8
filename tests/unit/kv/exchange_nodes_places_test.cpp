// SPDX-License-Identifier: Apache-2.0
// What a member on another node can do to the table of places at which a member looks for others, and a program between
// two members to their link. Needs no UCX.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kv/exchange/links.hpp"
#include "kv/exchange/remote_members.hpp"
#include "kv/exchange/remote_messages.hpp"
#include "shmem/config/log.hpp"
#include "tests/support/network.hpp"
#include "tests/support/relay.hpp"
#include "tests/unit/kv/exchange_fixture.hpp"
#include "tests/unit/kv/frame_socket.hpp"

namespace {

using namespace shmem::exchange;  // NOLINT(google-build-using-namespace): what the test is about
using exchange_test::kLong;
using wire::Endpoint;

LinkIdentity identity_of(std::uint64_t id) {
  return {.member = id, .node = id, .version = 1, .messages = kRemoteProtocol, .pid = 1};
}

wire::Secret secret() {
  return wire::derive_from_public("a secret", "places");
}

/// The address of a message port that does not exist.
std::vector<std::byte> address_of(std::uint64_t id) {
  return std::vector<std::byte>(8, static_cast<std::byte>(id));
}

/// The links of a member.
class Node {
 public:
  explicit Node(std::uint64_t id, const Endpoint& place = *wire::parse_endpoint("127.0.0.1:0")) : place_(place) {
    LinkSelf self{
        .exchange = "places", .who = identity_of(id), .slots = 8, .secret = secret(), .address = address_of(id)};
    const std::lock_guard opening(mutex_);
    links_ = *Links::open(place_, std::move(self),
                          {.reader_came =
                               [this](const LinkedReader& reader) {
                                 const std::lock_guard held(mutex_);
                                 readers_.push_back(reader);
                                 links_->welcome(reader.session);
                                 return true;
                               },
                           .reader_left = [](std::uint64_t /*session*/) {},
                           .owner_came =
                               [this](const LinkedOwner& owner) {
                                 const std::lock_guard lock(mutex_);
                                 owners_.push_back(owner);
                                 return true;
                               },
                           .owner_left = [](std::uint64_t /*session*/) {}},
                          counters_);
  }
  [[nodiscard]] const Endpoint& place() const { return place_; }
  void connect(const Endpoint& place) { EXPECT_TRUE(links_->connect({place}, kLong)); }
  bool reads_from(std::uint64_t id) {
    for (int i = 0; i < 5'000; ++i) {
      if (const auto all = owners();
          std::any_of(all.begin(), all.end(), [id](const auto& owner) { return owner.who.member == id; })) {
        return true;
      }
      ::usleep(1000);
    }
    return false;
  }
  void look_at(const Endpoint& place) { static_cast<void>(links_->connect({place}, kLong)); }
  [[nodiscard]] std::uint64_t unreachable() const { return counters_.unreachable.load(); }
  /// All that have been linked.
  [[nodiscard]] std::vector<LinkedOwner> owners() const {
    const std::lock_guard lock(mutex_);
    return owners_;
  }
  [[nodiscard]] std::vector<LinkedReader> readers() const {
    const std::lock_guard lock(mutex_);
    return readers_;
  }

 private:
  Counters counters_;
  mutable std::mutex mutex_;
  std::vector<LinkedOwner> owners_;
  std::vector<LinkedReader> readers_;
  Endpoint place_;
  std::unique_ptr<Links> links_;
};

/// A member with the secret that tells its first reader of as many others as it may. At none of the addresses can
/// anyone be.
class Teller {
 public:
  Teller() : place_(*wire::parse_endpoint("127.0.0.1:0")), listener_(*wire::listen_at(place_)) {
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
    challenge.proof = prove_owner(secret(), *hello, challenge);
    socket.send(kLinkChallenge, challenge);
    socket.seal(LinkSide::kOwner, secret(), secret(), *hello, challenge);
    ASSERT_EQ(socket.receive()->type, kLinkAnswer);
    const std::byte address{1};
    socket.send(kLinkWelcome, LinkWelcome{.requests = 1, .slots = 8}, std::span(&address, 1));
    std::vector<WireEndpoint> places(kMostLinkMembers, {.family = 4, .port = 1, .address = {255, 255, 255, 255}});
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i].port = static_cast<std::uint16_t>(1 + i);
    }
    socket.send_frame(wire::encode(kLinkMembers, 0, std::as_bytes(std::span(places))));
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

/// One member of a link and the other, with a program between them that changes a byte, if it is told to.
class LinkThroughAProgram {
 public:
  explicit LinkThroughAProgram(std::optional<test_support::Relay::Change> change)
      : relay_(owner_.place().port(), change), place_(owner_.place()) {
    place_.set_port(relay_.port());
    reader_.look_at(place_);
  }
  [[nodiscard]] bool was_changed() const { return relay_.has_changed(); }
  /// Through the program: members that have been linked once also look for each other.
  [[nodiscard]] bool is_linked() const {
    const auto owners = reader_.owners();
    return std::any_of(owners.begin(), owners.end(), [&](const auto& owner) { return owner.place == place_.text(); });
  }
  /// What each has been told of the other is what that has said.
  void expect_the_truth() const {
    for (const LinkedOwner& owner : reader_.owners()) {
      EXPECT_EQ(owner.who.member, 2U);
      EXPECT_EQ(owner.address, address_of(2));
      EXPECT_EQ(owner.slots, 8U);
      const auto readers = owner_.readers();
      EXPECT_TRUE(std::any_of(readers.begin(), readers.end(), [&](const auto& reader) {
        return reader.session == owner.requests && reader.answers == owner.session;
      }));
    }
    for (const LinkedReader& reader : owner_.readers()) {
      EXPECT_EQ(reader.member, 1U);
      EXPECT_EQ(reader.address, address_of(1));
    }
  }

 private:
  Node owner_{2};
  Node reader_{1};
  test_support::Relay relay_;
  Endpoint place_;
};

TEST(ExchangeLinks, AProgramBetweenTwoMembersCanOnlyPassOnWhatTheySay) {
  LinkThroughAProgram honest(std::nullopt);
  EXPECT_TRUE(honest.is_linked());
  honest.expect_the_truth();
  constexpr std::size_t kHeader = sizeof(wire::FrameHeader);
  constexpr std::size_t kPort = 8;  // the address of a message port
  struct Side {
    bool is_to_client;
    std::size_t first;  // the bytes of a frame
    std::size_t second;
    std::size_t proved_from;
    [[nodiscard]] std::size_t all() const { return first + second + sizeof(wire::Seal); }
  };
  for (const Side side :
       {Side{false, kHeader + sizeof(LinkHello), kHeader + sizeof(LinkAnswer) + kPort, kHeader},
        Side{true, kHeader + sizeof(LinkChallenge), kHeader + sizeof(LinkWelcome) + kPort, kHeader}}) {
    for (std::size_t offset = 0; offset < side.all(); ++offset) {
      SCOPED_TRACE(offset);
      constexpr std::size_t kLength = offsetof(wire::FrameHeader, length);
      if (offset / 4 == kLength / 4 || (offset - side.first) / 4 == kLength / 4) {
        continue;  // more bytes would be awaited, until the limit
      }
      LinkThroughAProgram changed(test_support::Relay::Change{side.is_to_client, offset});
      EXPECT_TRUE(changed.was_changed());
      changed.expect_the_truth();
      EXPECT_TRUE(offset < side.proved_from || !changed.is_linked());
    }
  }
}

std::mutex warnings_mutex;
std::vector<std::string> warnings;

void keep_warning(int /*level*/, const char* text) {
  const std::lock_guard lock(warnings_mutex);
  warnings.emplace_back(text);
}

bool becomes(const Node& node, std::uint64_t unreachable) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (node.unreachable() != unreachable && std::chrono::steady_clock::now() < deadline) {
    ::usleep(1000);
  }
  return node.unreachable() == unreachable;
}

TEST(ExchangeSilentPlaces, AreToldOnce) {
  shmem::set_log_handler(keep_warning);
  const auto place = *wire::parse_endpoint("127.0.0.1:" + std::to_string(test_support::free_loopback_port()));
  Node node(1);
  node.look_at(place);
  EXPECT_EQ(node.unreachable(), 0U) << "not at once";
  EXPECT_TRUE(becomes(node, 1));
  {
    Node other(2, place);
    EXPECT_TRUE(becomes(node, 0)) << "a member has been started there";
  }
  EXPECT_TRUE(becomes(node, 1)) << "it has ended";
  shmem::set_log_handler(nullptr);
  const std::lock_guard lock(warnings_mutex);
  ASSERT_EQ(warnings.size(), 2U) << "one for each time";
  EXPECT_THAT(warnings[0], testing::StartsWith("shmem: exchange places: no member has answered at " + place.text() +
                                               " for 5 s (Connection refused)"));
}

/// Else they would decline each other's links, each as a member that it sees already.
TEST(ExchangeNodeNumbers, DifferByMachineAndGivenName) {
  const auto machine = [](const std::string& boot, std::uint8_t adapter, const std::string& host) {
    base::Machine made{};
    boot.copy(made.boot.data(), made.boot.size());
    made.hardware = {2, adapter};
    host.copy(made.host.data(), made.host.size());
    return made;
  };
  const auto number = [](const base::Machine& of, const std::string& id = "", const std::string& folder = "") {
    return node_number(of, id, folder);
  };
  const auto kiwi = machine("boot", 1, "kiwi");
  EXPECT_EQ(number(kiwi), number(machine("boot", 1, "a container")));
  EXPECT_NE(number(kiwi), number(machine("other boot", 1, "kiwi")));
  EXPECT_NE(number(kiwi), number(machine("boot", 2, "kiwi"))) << "a copy of a virtual machine";
  EXPECT_NE(number(kiwi), number(kiwi, "id"));
  EXPECT_NE(number(machine("", 1, "kiwi")), number(machine("", 1, "lemon"))) << "the kernel tells no id";
  EXPECT_EQ(number(machine("", 1, "kiwi")), number(machine("", 1, "kiwi")));
  EXPECT_EQ(number(kiwi, "", "/tmp"), number(machine("boot", 2, "a container"), "", "/tmp"))
      << "containers have adapters of their own";
  EXPECT_NE(number(kiwi, "", "/tmp"), number(kiwi, "", "/"));
}

}  // namespace
