// SPDX-License-Identifier: Apache-2.0
// Programs on other nodes that do not keep to the protocol of exchanges: without the secret they get nothing, and with
// it they harm no other member.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>

#include "shmem/bootstrap/uid_protocol.hpp"
#include "tests/unit/kv/exchange_insider.hpp"
#include "tests/unit/kv/exchange_nodes.hpp"
#include "tests/unit/kv/frame_socket.hpp"

namespace {

using namespace shmem::exchange;  // NOLINT(google-build-using-namespace): what the test is about
using exchange_test::address_of;
using exchange_test::connected_member;
using exchange_test::exchange_name;
using exchange_test::FrameSocket;
using exchange_test::Insider;
using exchange_test::kLong;
using exchange_test::member_on_node;
using ::testing::HasSubstr;
using wire::encode;
using wire::Endpoint;
using wire::PortMessage;
using TestMember = exchange_test::Member;

/// A request for it is answered by an error.
constexpr PullItem kNoBlock{2, 999, 0, 0};

RemoteHead head_of(RemoteKind kind, std::uint32_t count) {
  RemoteHead head;
  head.kind = kind;
  head.number = 1;
  head.count = count;
  return head;
}

wire::Secret secret_of(const std::string& exchange) {
  return *wire::derive_secret("a secret", "exchange " + exchange);
}

/// A TCP connection to a member.
class Stranger : public FrameSocket {
 public:
  explicit Stranger(const TestMember& member) : FrameSocket(*wire::parse_endpoint(address_of(member))) {}

  /// As a reader that takes `mine` for the secret. The owner's frames can be read by all.
  void say_hello(const wire::Secret& mine, const wire::Secret& secret, const LinkIdentity& who = {.member = 4711}) {
    LinkHello hello;
    hello.who = who;
    send(kLinkHello, hello);
    const auto frame = receive();
    ASSERT_TRUE(frame && frame->type == kLinkChallenge);
    seal(LinkSide::kReader, mine, secret, hello, frame->head<LinkChallenge>().value_or(LinkChallenge{}));
  }
};

class ExchangeNodesHostile : public exchange_test::InsiderTest {
 protected:
  /// An owner of a block, and a reader that must not notice anything.
  void make_pair(int number) {
    name_ = exchange_name(number);
    owner_ = connected_member(name_, "node 1");
    owner_->make_memory(1 << 20);
    ASSERT_EQ(owner_->publish("key", 0, 1000), 0);
    reader_ = connected_member(name_, "node 2", address_of(*owner_));
  }
  void expect_others_go_on() {
    std::string bytes;
    EXPECT_EQ(reader_->pull(reader_->find("key"), bytes), 0) << shmemx_error_text();
    EXPECT_EQ(owner_->stats().readers, 1U);
  }
  /// What find says while all requests are answered by this.
  int find_with(std::function<std::optional<PortMessage>(RemoteHead)> answer) {
    insider_->answer_with(std::move(answer));
    return reader_->find("key").status;
  }
};

TEST_F(ExchangeNodesHostile, GarbageInsteadOfAHello) {
  make_pair(201);
  const std::string web = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
  Stranger browser(*owner_);
  browser.send(std::as_bytes(std::span(web)));
  EXPECT_FALSE(browser.receive());
  Stranger huge(*owner_);
  const wire::FrameHeader header{wire::kFrameMagic, wire::kFrameVersion, kLinkHello, 1U << 30, 0};
  huge.send(std::as_bytes(std::span(&header, 1)));
  EXPECT_FALSE(huge.receive());
  Stranger other(*owner_);
  other.send(*encode(shmem::UidFrame::kHello, 0, std::as_bytes(std::span(web))));
  const auto refused = other.receive();
  ASSERT_TRUE(refused && refused->type == kLinkRefused);
  EXPECT_THAT(refused->text(0), HasSubstr("a member of an exchange listens here"));
  const Stranger silent(*owner_);
  expect_others_go_on();
  EXPECT_EQ(owner_->stats().refused, 3U);
}

TEST_F(ExchangeNodesHostile, StrangersThatSayNothingGiveWay) {
  make_pair(206);
  std::vector<std::unique_ptr<Stranger>> strangers;
  bool at_once = false;
  for (int round = 0; round < 5 && !at_once; ++round) {  // in some this process may get no processor
    strangers.clear();
    for (int i = 0; i < 100; ++i) {
      strangers.push_back(std::make_unique<Stranger>(*owner_));
    }
    // Not after the time that a stranger has: at once, since later ones have come.
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 60; ++i) {
      EXPECT_FALSE(strangers[static_cast<std::size_t>(i)]->receive()) << i;
    }
    at_once = std::chrono::steady_clock::now() - begin < std::chrono::seconds(4);
  }
  EXPECT_TRUE(at_once);
  const auto late = connected_member(name_, "node 3", address_of(*owner_));
  std::string bytes;
  EXPECT_EQ(late->pull(late->find_soon("key"), bytes), 0);
  EXPECT_EQ(reader_->pull(reader_->find("key"), bytes), 0);
}

TEST_F(ExchangeNodesHostile, StrangersThatSayNothingDoNotDropOneThatProvesItself) {
  make_pair(208);
  Stranger reader(*owner_);
  reader.say_hello(secret_of(name_), secret_of(name_));  // and has got the owner's proof
  std::vector<std::unique_ptr<Stranger>> strangers;
  strangers.reserve(100);
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(std::make_unique<Stranger>(*owner_));
  }
  for (int i = 0; i < 60; ++i) {
    EXPECT_FALSE(strangers[static_cast<std::size_t>(i)]->receive()) << i;
  }
  reader.send(kLinkAnswer, LinkAnswer{});  // without an address: what says so has taken it for a member
  const auto heard = reader.receive();
  EXPECT_TRUE(heard && heard->type == kLinkRefused && heard->text(0) == "this is not a message of a member");
}

TEST_F(ExchangeNodesHostile, WithoutTheSecretNothingIsSaid) {
  make_pair(202);
  const auto secret = secret_of(name_);
  Stranger stranger(*owner_);
  stranger.say_hello(*wire::derive_secret("a guess", "exchange " + name_), secret);
  const std::string address = "somewhere";
  stranger.send(kLinkAnswer, LinkAnswer{.answers = 1}, std::as_bytes(std::span(address)));
  const auto refused = stranger.receive();
  ASSERT_TRUE(refused && refused->type == kLinkRefused);
  EXPECT_THAT(refused->text(0), HasSubstr("the proof of the secret is wrong"));
  EXPECT_FALSE(stranger.receive());
  // What was sealed for another connection is of no use, either: its random numbers are others.
  Stranger first(*owner_);
  first.say_hello(secret, secret);
  Stranger second(*owner_);
  second.say_hello(secret, secret);
  std::swap(first.seals(), second.seals());
  second.send(kLinkAnswer, LinkAnswer{.answers = 1}, std::as_bytes(std::span(address)));
  const auto replayed = second.receive();
  ASSERT_TRUE(replayed && replayed->type == kLinkRefused);
  expect_others_go_on();
}

TEST_F(ExchangeNodesHostile, AReaderThatMessagesDoNotReachIsNotWelcome) {
  make_pair(207);
  auto port = *wire::make_message_port(
      {.receive = [](auto, auto) {}, .lost = [](std::uint64_t, const std::string&) {}, .turn = [] { return false; }},
      false);
  const auto address = port->address();
  const LinkIdentity who{.member = 4711, .version = port->version(), .messages = kRemoteProtocol};
  port.reset();
  Stranger reader(*owner_);
  reader.say_hello(secret_of(name_), secret_of(name_), who);
  reader.send(kLinkAnswer, LinkAnswer{.answers = 1}, address);
  EXPECT_FALSE(reader.receive());
  expect_others_go_on();
}

TEST_F(ExchangeNodesHostile, AnImpostorAtAnAddressIsTold) {
  make_pair(203);
  // It listens, and repeats to the member what that has said.
  Endpoint place = *wire::parse_endpoint("127.0.0.1:0");
  const auto listener = *wire::listen_at(place);
  const auto member = member_on_node(name_, "node 3");
  const std::string members = place.text();
  const auto network = exchange_test::network_of(members);
  std::thread impostor([&] {
    pollfd waiting{listener.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 20'000), 1);
    const base::UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
    LinkChallenge challenge;
    const auto bytes = encode(kLinkChallenge, 0, std::as_bytes(std::span(&challenge, 1)));
    static_cast<void>(wire::send_all(connection.get(), *bytes, LinkConnection::Clock::now() + kLong));
    std::array<std::byte, 4096> rest{};
    while (::recv(connection.get(), rest.data(), rest.size(), 0) > 0) {
    }
  });
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), -EACCES);
  impostor.join();
  EXPECT_THAT(member->error(), HasSubstr("does not know the secret"));
}

TEST_F(ExchangeNodesHostile, RequestsThatMakeNoSenseEndTheLink) {
  make_pair(204);
  using Bytes = std::vector<std::byte>;
  const std::vector<std::pair<RemoteHead, Bytes>> requests{
      {head_of(RemoteKind::kFind, 1), Bytes(3)},  // not even a size
      {head_of(RemoteKind::kFind, 1), Bytes(4)},  // a key of 0 bytes
      {head_of(RemoteKind::kFind, 0xffffffff), Bytes(8)},
      {head_of(RemoteKind::kFind, 0), Bytes()},
      {head_of(RemoteKind::kPull, 1), Bytes(sizeof(PullItem))},  // a block of 0 bytes
      {head_of(RemoteKind::kPull, 33), Bytes(33 * sizeof(PullItem))},
      {head_of(RemoteKind::kRelease, 2), Bytes(sizeof(ReleaseItem))},
      {head_of(RemoteKind::kList, 0), Bytes(1)},
      {head_of(RemoteKind::kFound, 1), Bytes(sizeof(FoundItem))},  // an answer
      {head_of(static_cast<RemoteKind>(9), 1), Bytes()},
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Insider insider(name_, 1000 + i);
    insider.connect(*owner_);
    insider.ask(requests[i].first, requests[i].second);
    if (requests[i].first.kind < RemoteKind::kFound) {
      EXPECT_TRUE(insider.is_ended()) << i;
    }
  }
  const auto refused = owner_->stats().refused;
  EXPECT_GE(refused, requests.size() - 1);
  for (int i = 0; i < 5'000 && owner_->stats().readers > 1; ++i) {
    ::usleep(1000);
  }
  expect_others_go_on();
}

TEST_F(ExchangeNodesHostile, PullsOfAnythingGetAnError) {
  make_pair(205);
  Insider insider(name_, 1);
  insider.connect(*owner_);
  for (const PullItem item : {kNoBlock, PullItem{4, 1000, 0, 0}, PullItem{2, 1000, 0xffffffff, 0},
                              PullItem{0, 1000, 0, 0}, PullItem{2, UINT64_MAX, 0, 0}}) {
    EXPECT_TRUE(insider.ask_and_get_answer(head_of(RemoteKind::kPull, 1), std::as_bytes(std::span(&item, 1))));
  }
  EXPECT_EQ(owner_->withdraw("key", exchange_test::kSecond), 0) << "nothing is left leased";
}

TEST_F(ExchangeNodesHostile, AnswersThatMakeNoSenseEndTheOwner) {
  const std::vector<std::function<std::optional<PortMessage>(RemoteHead)>> answers{
      [](RemoteHead head) {
        head.kind = RemoteKind::kFound;
        head.count = 2;  // of one key
        return std::optional(Insider::message_of(head, std::vector<std::byte>(2 * sizeof(FoundItem))));
      },
      [](RemoteHead head) {
        head.kind = RemoteKind::kFound;
        head.count = 1;
        return std::optional(Insider::message_of(head, std::vector<std::byte>(7)));
      },
      [](RemoteHead head) {
        head.kind = RemoteKind::kFound;  // found, of 0 bytes
        head.count = 1;
        return std::optional(Insider::message_of(head, std::vector<std::byte>(sizeof(FoundItem))));
      },
      [](RemoteHead head) {
        head.kind = RemoteKind::kDescribed;
        return std::optional(Insider::message_of(head, {}));
      },
  };
  for (std::size_t i = 0; i < answers.size(); ++i) {
    make_beside(210 + static_cast<int>(i));
    EXPECT_EQ(find_with(answers[i]), -ENOENT) << i;
    EXPECT_TRUE(insider_->is_ended()) << i;
  }
}

TEST_F(ExchangeNodesHostile, BytesBeyondABlockAreNotWritten) {
  make_beside(220);
  EXPECT_EQ(find_with([](RemoteHead head) {
              const FoundItem item{.epoch = 2, .bytes = 100};
              head.kind = RemoteKind::kFound;
              head.count = 1;
              return std::optional(Insider::message_of(head, std::as_bytes(std::span(&item, 1))));
            }),
            0);
  const auto block = reader_->find("key");
  ASSERT_EQ(block.status, 0);
  insider_->answer_with([](RemoteHead head) {
    BodyWriter body(1000);
    body.add(PieceItem{0, 0, 50, 51});
    body.add_bytes(std::string(51, 'x').data(), 51);
    head.kind = RemoteKind::kPieces;
    head.count = 1;
    return std::optional(body.take(head));
  });
  std::string room(200, '?');
  void* const to = room.data();
  EXPECT_EQ(shmemx_exchange_pull(reader_->get(), &block, &to, 1, nullptr, nullptr), -EBADMSG);
  EXPECT_EQ(room, std::string(200, '?'));
  EXPECT_EQ(reader_->stats().failed_corrupt, 1U);
}

TEST_F(ExchangeNodesHostile, AnOwnerThatDoesNotAnswerDelaysNoPullsOfThisNode) {
  name_ = exchange_name(222);
  insider_ = std::make_unique<Insider>(name_, 666);
  owner_ = member_on_node(name_, "node 2");
  owner_->make_memory(4096);
  ASSERT_EQ(owner_->publish("key", 0, 100), 0);
  reader_ = connected_member(name_, "node 2", insider_->place());  // sees the owner at once
  ASSERT_EQ(reader_->stats().members, 2U);
  const auto here = reader_->find("key");
  ASSERT_EQ(here.status, 0);
  insider_->answer_with([](RemoteHead /*head*/) { return std::nullopt; });
  const shmemx_exchange_block_t there{.member = 666,
                                      .epoch = 2,
                                      .bytes = 100,
                                      .layout = 0,
                                      .seat = SHMEMX_EXCHANGE_MOST_MEMBERS,
                                      .slot = 0,
                                      .lease = 0,
                                      .status = 0};
  std::array<char, 200> room{};
  const std::array<void*, 2> to{room.data(), room.data() + 100};
  shmemx_exchange_transfer_t* remote = nullptr;
  shmemx_exchange_transfer_t* local = nullptr;
  ASSERT_EQ(shmemx_exchange_pull(reader_->get(), &there, &to[0], 1, nullptr, &remote), 0);
  ASSERT_EQ(shmemx_exchange_pull(reader_->get(), &here, &to[1], 1, nullptr, &local), 0);
  EXPECT_EQ(shmemx_exchange_wait(local, 20 * exchange_test::kSecond), 0) << shmemx_error_text();
  EXPECT_EQ(shmemx_exchange_test(remote), -EINPROGRESS);
  insider_.reset();  // ends the other one
  EXPECT_EQ(shmemx_exchange_wait(remote, 20 * exchange_test::kSecond), -EOWNERDEAD);
  shmemx_exchange_transfer_free(local);
  shmemx_exchange_transfer_free(remote);
}

TEST_F(ExchangeNodesHostile, AnOwnerThatDoesNotAnswerIsGivenUp) {
  make_beside(221, 100);
  EXPECT_EQ(find_with([](RemoteHead /*head*/) { return std::nullopt; }), -ENOENT);
  EXPECT_TRUE(insider_->is_ended()) << "so that it delays nobody again";
}

}  // namespace
