// SPDX-License-Identifier: Apache-2.0
// Members on other nodes that have another version of libshmem or of UCX: both sides say which.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>

#include "kv/exchange/links.hpp"
#include "kv/exchange/remote_messages.hpp"
#include "tests/unit/kv/exchange_nodes.hpp"
#include "tests/unit/kv/frame_socket.hpp"
#include "wire/message_port.hpp"

namespace {

using exchange_test::address_of;
using exchange_test::connected_member;
using exchange_test::exchange_name;
using exchange_test::member_on_node;
using exchange_test::network_of;
using namespace shmem::exchange;  // NOLINT(google-build-using-namespace): what the test is about
using ::testing::HasSubstr;
using wire::Frame;

LinkSelf self_of(const std::string& exchange, std::uint64_t version, std::uint32_t messages) {
  return {.who = {.member = 666, .node = 666, .version = version, .messages = messages, .pid = 1},
          .slots = 8,
          .secret = *wire::derive_secret("a secret", "exchange " + exchange),
          .address = std::vector<std::byte>(8)};
}

/// The links of an owner that knows the secret and has these versions. Nothing goes over them.
class OtherOwner {
 public:
  explicit OtherOwner(LinkSelf self) : place_(*wire::parse_endpoint("127.0.0.1:0")) {
    links_ = *Links::open(place_, std::move(self),
                          {.reader_came = [this](const LinkedReader&) { return linked(); },
                           .reader_left = [](std::uint64_t) {},
                           .owner_came = [](const LinkedOwner&) { return false; },
                           .owner_left = [](std::uint64_t) {}},
                          counters_);
  }
  OtherOwner(const OtherOwner&) = delete;
  OtherOwner& operator=(const OtherOwner&) = delete;
  ~OtherOwner() { links_.reset(); }

  [[nodiscard]] std::string place() const { return place_.text(); }
  [[nodiscard]] bool was_linked() const { return linked_; }

 private:
  /// Refuses the link, which has come about so far: the rest is not what the test is about.
  bool linked() {
    linked_ = true;
    return false;
  }

  Counters counters_;
  std::atomic<bool> linked_{false};
  wire::Endpoint place_;
  std::unique_ptr<Links> links_;
};

/// The owner's answer to the proof of a reader that knows the secret, and does not look at the owner's versions itself:
/// a welcome, or a text.
Frame ask_for_a_link(const exchange_test::Member& owner, const LinkSelf& self) {
  exchange_test::FrameSocket socket(*wire::parse_endpoint(address_of(owner)));
  LinkHello hello;
  hello.who = self.who;
  socket.send(kLinkHello, hello);
  const auto challenge = socket.receive().value_or(Frame{}).head<LinkChallenge>();
  EXPECT_TRUE(challenge);
  socket.seal(LinkSide::kReader, self.secret, self.secret, hello, challenge.value_or(LinkChallenge{}));
  socket.send(kLinkAnswer, LinkAnswer{.answers = 1}, self.address);
  return socket.receive().value_or(Frame{});
}

class ExchangeNodesVersions : public exchange_test::NodesTest {
 protected:
  void SetUp() override {
    NodesTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    auto port = wire::make_message_port(
        {.receive = [](auto, auto) {}, .lost = [](std::uint64_t, const std::string&) {}, .turn = [] { return false; }},
        false);
    ASSERT_TRUE(port);
    port_ = *std::move(port);
    version_ = port_->version();
  }
  /// The member, as an owner and as a reader, says that it cannot be linked with one of these versions, and why.
  static void expect_refused(int number, std::uint64_t version, std::uint32_t messages, const std::string& as_owner,
                             const std::string& as_reader) {
    const std::string name = exchange_name(number);
    const LinkSelf self = self_of(name, version, messages);
    const auto owner = connected_member(name, "node 1");
    const Frame answer = ask_for_a_link(*owner, self);
    EXPECT_EQ(answer.type, kLinkRefused);
    EXPECT_EQ(answer.text(0), as_owner);
    EXPECT_EQ(owner->stats().readers, 0U);
    EXPECT_EQ(owner->stats().refused, 1U);

    const OtherOwner other(self);
    const auto reader = member_on_node(name, "node 2");
    const std::string members = other.place();
    const auto network = network_of(members);
    EXPECT_EQ(shmemx_exchange_connect(reader->get(), &network), -EACCES);
    EXPECT_THAT(reader->error(), HasSubstr(members + " cannot be linked with this one: " + as_reader));
    EXPECT_EQ(reader->stats().members, 0U);
    EXPECT_FALSE(other.was_linked());
  }

  std::unique_ptr<wire::MessagePort> port_;
  std::uint64_t version_ = 0;
};

TEST_F(ExchangeNodesVersions, OfLibshmem) {
  const std::string why = "they have different versions of libshmem: install the same one on all nodes";
  expect_refused(301, version_, kRemoteProtocol + 1, why, why);
}

TEST_F(ExchangeNodesVersions, OfUcx) {
  const std::string mine = std::to_string(version_ >> 32) + "." + std::to_string(version_ & 0xffff'ffffU);
  const std::string why = "one has UCX 7.77, the other " + mine + ": install the same version on all nodes";
  expect_refused(302, std::uint64_t{7} << 32 | 77, kRemoteProtocol, why, why);
}

/// Else the tests above might see another refusal.
TEST_F(ExchangeNodesVersions, ThatAreEqualAreLinked) {
  const std::string name = exchange_name(303);
  LinkSelf self = self_of(name, version_, kRemoteProtocol);
  self.address = port_->address();  // a reader is welcome once messages reach it
  const auto owner = connected_member(name, "node 1");
  EXPECT_EQ(ask_for_a_link(*owner, self).type, kLinkWelcome);
  const OtherOwner other(self);
  const auto reader = member_on_node(name, "node 2");
  const std::string members = other.place();
  const auto network = network_of(members);
  EXPECT_EQ(shmemx_exchange_connect(reader->get(), &network), -EACCES);
  EXPECT_THAT(reader->error(), HasSubstr("no memory for another reader")) << "what linked() makes of it";
  EXPECT_TRUE(other.was_linked());
}

}  // namespace
