// SPDX-License-Identifier: Apache-2.0
// The parts of the bootstrap over TCP: addresses, ids, frames, and the state of the server. No sockets, no threads.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shmem/bootstrap/uid_protocol.hpp"
#include "shmem/bootstrap/uid_session.hpp"
#include "tests/unit/shmem/text_of.hpp"
#include "wire/interfaces.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::text_of;
using wire::choose_address;
using wire::InterfaceAddress;
using wire::parse_interface;

TEST(Endpoints, AreReadAndWritten) {
  EXPECT_EQ(wire::parse_endpoint("127.0.0.1:80").value().text(), "127.0.0.1:80");
  EXPECT_EQ(wire::parse_endpoint("tcp://10.1.2.3:65535").value().text(), "10.1.2.3:65535");
  EXPECT_EQ(wire::parse_endpoint("[::1]:0").value().text(), "[::1]:0");
  EXPECT_EQ(wire::parse_endpoint("tcp6://[2001:db8:0::5]:99").value().text(), "[2001:db8::5]:99");
  const auto local = wire::parse_endpoint("localhost:7").value();
  EXPECT_EQ(local.port(), 7);
}

TEST(Endpoints, AreRefusedWithTheReasonIfInvalid) {
  const std::pair<const char*, const char*> cases[] = {{"127.0.0.1", "port is missing"},
                                                       {"127.0.0.1:", "\"\" is not a port"},
                                                       {"127.0.0.1:65536", "\"65536\" is not a port"},
                                                       {"127.0.0.1:8x", "\"8x\" is not a port"},
                                                       {"127.0.0.1:-1", "\"-1\" is not a port"},
                                                       {":80", "address is missing"},
                                                       {"::1:80", "stands in brackets"},
                                                       {"[::1]", "stands in brackets"},
                                                       {"[127.0.0.1]:80", "is not an IPv6 address"},
                                                       {"1.2.3:80", "\"1.2.3\" is not an address"},
                                                       {"1.2.3.4.5:80", "is not an address"},
                                                       {"256.1.1.1:80", "is not an address"},
                                                       {"0.0.0.0:80", "other hosts cannot connect to 0.0.0.0"},
                                                       {"[::]:80", "other hosts cannot connect to"},
                                                       {"no-such-host.invalid:80", "cannot be found"}};
  for (const auto& [text, reason] : cases) {
    EXPECT_THAT(text_of(wire::parse_endpoint(text)), HasSubstr(reason)) << text;
  }
}

TEST(InterfaceNames, AreReadWithTheirKind) {
  EXPECT_EQ(parse_interface("eth0").value().family, AF_UNSPEC);
  EXPECT_EQ(parse_interface("eth0:inet4").value().family, AF_INET);
  EXPECT_EQ(parse_interface("eth0:inet6").value().family, AF_INET6);
  EXPECT_EQ(parse_interface("eth0:inet6").value().name, "eth0");
  for (const char* text : {"", ":inet4", "eth0:", "eth0:ipv4"}) {
    EXPECT_THAT(text_of(parse_interface(text)), HasSubstr(std::string("SHMEM_UID_SOCK_IFNAME=") + text + " is not"));
  }
}

InterfaceAddress interface(const std::string& name, const std::string& address, bool up = true) {
  return {name, wire::parse_endpoint(address + ":0").value(), up, name == "lo"};
}

std::string chosen(const std::vector<InterfaceAddress>& all, const std::optional<std::string>& choice = {}) {
  const auto wanted = choice ? std::optional(parse_interface(*choice).value()) : std::nullopt;
  const auto address = choose_address(all, wanted);
  return address ? address->address_text() : address.error().text;
}

TEST(Addresses, AreChosenSoThatOtherNodesReachThem) {
  const auto lo = interface("lo", "127.0.0.1");
  const auto lo6 = interface("lo", "[::1]");
  const auto docker = interface("docker0", "172.17.0.1");
  const auto bridge = interface("br-12ab", "172.18.0.1");
  const auto guest = interface("virbr0", "192.168.122.1");
  const auto tunnel = interface("tun0", "10.8.0.1");
  const auto down = interface("eth1", "10.0.0.9", false);
  const auto link_local = interface("eth0", "[fe80::1]");
  const auto six = interface("eth0", "[2001:db8::1]");
  const auto four = interface("eth0", "10.0.0.1");
  EXPECT_EQ(chosen({lo, docker, bridge, guest, tunnel, down, link_local, six, four}), "10.0.0.1");
  EXPECT_EQ(chosen({lo, docker, down, link_local, six}), "2001:db8::1");
  EXPECT_EQ(chosen({lo6, docker, lo, down, link_local}), "127.0.0.1");  // a job on one node
  EXPECT_EQ(chosen({lo6, link_local}), "::1");
  EXPECT_THAT(chosen({docker, down, link_local}),
              AllOf(HasSubstr("docker0 172.17.0.1, eth1 10.0.0.9 (down), eth0 fe80::1"),
                    HasSubstr("SHMEM_UID_SOCK_IFNAME"), HasSubstr("SHMEM_UID_SESSION_ID")));
  EXPECT_THAT(chosen({}), HasSubstr("are: none"));

  EXPECT_EQ(chosen({lo, docker, four}, "docker0"), "172.17.0.1");
  EXPECT_EQ(chosen({lo, six, four}, "eth0"), "10.0.0.1");
  EXPECT_EQ(chosen({lo, six, four}, "eth0:inet6"), "2001:db8::1");
  EXPECT_THAT(chosen({lo, six}, "eth0:inet4"), AllOf(HasSubstr("SHMEM_UID_SOCK_IFNAME=eth0:inet4: that interface has"),
                                                     HasSubstr("lo 127.0.0.1, eth0 2001:db8::1")));
  EXPECT_THAT(chosen({lo, down}, "eth1"), HasSubstr("has no address that can be used"));
}

TEST(UniqueIds, SurviveEncodingAndDecoding) {
  for (const char* place : {"192.0.2.7:4711", "[2001:db8::7]:1"}) {
    const UniqueId id{{1, 2, 3, 16}, wire::parse_endpoint(place).value()};
    const auto back = unpack(pack(id)).value();
    EXPECT_EQ(back.secret, id.secret);
    EXPECT_EQ(back.place.text(), place);
  }
  EXPECT_THAT(text_of(unpack(UniqueIdBytes{})), HasSubstr("was it sent to all PEs?"));
}

TEST(UniqueIds, OfSessionsDifferIfTheJobsDiffer) {
  const UidSettings settings{.session = "127.0.0.1:99", .size = 4, .shared_secret = "s"};
  const auto secret = [&](auto change) {
    UidSettings other = settings;
    change(other);
    return shared_id(other).value().secret;
  };
  const Secret mine = secret([](auto&) {});
  EXPECT_EQ(secret([](auto&) {}), mine);
  EXPECT_NE(secret([](auto& other) { other.shared_secret = "t"; }), mine);
  EXPECT_NE(secret([](auto& other) { other.shared_secret = ""; }), mine);
  EXPECT_NE(secret([](auto& other) { other.session = "127.0.0.1:98"; }), mine);
  EXPECT_NE(secret([](auto& other) { other.size = 5; }), mine);
  EXPECT_THAT(text_of(shared_id({.session = "127.0.0.1:0"})), HasSubstr("cannot know which port"));
  EXPECT_THAT(text_of(shared_id({.session = "here"})), HasSubstr("SHMEM_UID_SESSION_ID=here: a port is missing"));
}

std::vector<std::byte> as_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(Frames, AreAssembledFromSingleBytes) {
  const std::string text(1000, 'x');
  const auto first = encode(UidFrame::kGather, 7, as_bytes("head"), as_bytes(text));
  const auto second = encode({std::errc::timed_out, "late"});
  std::vector<std::byte> stream(*first);
  stream.insert(stream.end(), second->begin(), second->end());
  FrameReader reader(2000);
  std::vector<Frame> frames;
  for (const std::byte byte : stream) {
    reader.push({&byte, 1});
    if (auto frame = reader.next().value()) {
      frames.push_back(*std::move(frame));
    }
  }
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].type, UidFrame::kGather);
  EXPECT_EQ(frames[0].step, 7U);
  EXPECT_EQ(frames[0].text(4), text);
  EXPECT_EQ(frames[1].head<FailedHead>()->code, ETIMEDOUT);
  EXPECT_EQ(frames[1].text(sizeof(FailedHead)), "late");
}

TEST(Frames, MayArriveTogether) {
  std::vector<std::byte> stream;
  for (std::uint32_t step = 0; step < 100; ++step) {
    const auto frame = encode(UidFrame::kGather, step, {}, as_bytes(std::string(step, 'y')));
    stream.insert(stream.end(), frame->begin(), frame->end());
  }
  FrameReader reader(100);
  reader.push(stream);
  for (std::uint32_t step = 0; step < 100; ++step) {
    EXPECT_EQ(reader.next().value()->payload.size(), step);
  }
  EXPECT_FALSE(reader.next().value());
}

TEST(Frames, AreRefusedIfInvalid) {
  const auto refusal = [](auto change) {
    std::vector<std::byte> bytes = *encode(UidFrame::kGather, 1, as_bytes(std::string(50, 'z')));
    wire::FrameHeader header{};
    std::memcpy(&header, bytes.data(), sizeof(header));
    change(header);
    std::memcpy(bytes.data(), &header, sizeof(header));
    FrameReader reader(50);
    reader.push(bytes);
    return text_of(reader.next());
  };
  EXPECT_EQ(refusal([](auto&) {}), "went well");
  EXPECT_THAT(refusal([](auto& header) { header.magic = 0x20544547; }), HasSubstr("not a message of libshmem"));
  EXPECT_THAT(refusal([](auto& header) { header.version = 9; }),
              AllOf(HasSubstr("version 9"), HasSubstr("this libshmem version " + std::to_string(wire::kFrameVersion))));
  EXPECT_THAT(refusal([](auto& header) { header.length = 51; }), HasSubstr("51 bytes, more than the 50"));
  EXPECT_THAT(refusal([](auto& header) { header.length = UINT32_MAX; }), HasSubstr("4294967295 bytes"));
}

/// The server's state of a job of three, with a clock that the test sets.
class Room : public ::testing::Test {
 protected:
  static constexpr Secret kSecret{4, 7, 1, 1};

  Hello hello(int rank, int size = 3) const {
    Hello hello{{}, rank, size, 100 + rank, 10'000, {}};
    std::string("kiwi").copy(hello.host.data(), hello.host.size());
    return hello;
  }
  Result<int> enter(int rank) { return state_.join(hello(rank), "10.0.0.2:5", now_); }
  void enter_all() {
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(enter(rank));
    }
    sent();
  }
  void gather(int rank, std::uint32_t step, const std::string& bytes) {
    const GatherHead head{10'000};
    Frame frame{UidFrame::kGather, step, {}};
    const auto start = std::as_bytes(std::span(&head, 1));
    frame.payload.assign(start.begin(), start.end());
    for (const char byte : bytes) {
      frame.payload.push_back(static_cast<std::byte>(byte));
    }
    state_.receive(rank, frame, now_);
  }
  void abort(int rank, const std::string& reason) {
    FrameReader reader(100);
    reader.push(*encode(UidFrame::kAbort, AbortHead{rank, 1}, reason));
    state_.receive(rank, reader.next().value().value(), now_);
  }
  void leave(int rank) { state_.receive(rank, {UidFrame::kLeave, 0, {}}, now_); }
  /// The messages that were sent, each as "PE: type text".
  std::vector<std::string> sent() {
    std::vector<std::string> all;
    for (const auto& [pe, bytes] : state_.take_messages()) {
      FrameReader reader(10'000);
      reader.push(*bytes);
      const Frame frame = reader.next().value().value();
      const std::size_t head = frame.type == UidFrame::kFailed    ? sizeof(FailedHead)
                               : frame.type == UidFrame::kAborted ? sizeof(AbortHead)
                                                                  : 0;
      std::string name = frame.type == UidFrame::kAccepted   ? "accepted"
                         : frame.type == UidFrame::kWelcome  ? "welcome"
                         : frame.type == UidFrame::kGathered ? "gathered " + frame.text(0)
                         : frame.type == UidFrame::kAborted  ? "aborted " + frame.text(head)
                                                             : "failed " + frame.text(head);
      all.push_back(std::to_string(pe) + ": " + name);
    }
    return all;
  }
  void pass(milliseconds time) {
    now_ += time;
    state_.expire(now_);
  }

  UidJobState::Time now_{};
  UidJobState state_{{.secret = kSecret,
                      .size = 3,
                      .server = 0,
                      .limit = milliseconds(20'000),
                      .place = "10.0.0.1:9",
                      .how = "among eth0"},
                     now_};
};

TEST_F(Room, WelcomesAllPesWhenAllHaveCome) {
  ASSERT_TRUE(enter(2));
  ASSERT_TRUE(enter(0));
  EXPECT_THAT(sent(), ElementsAre("2: accepted", "0: accepted"));
  EXPECT_FALSE(state_.complete());
  EXPECT_EQ(enter(1).value(), 1);
  EXPECT_TRUE(state_.complete());
  EXPECT_EQ(sent().size(), 1U + 3U);
  pass(std::chrono::hours(10));
  EXPECT_FALSE(state_.failed());  // no PE waits
}

TEST_F(Room, GathersInRankOrderStepAfterStep) {
  enter_all();
  gather(2, 1, "c");
  gather(0, 1, "a");
  EXPECT_THAT(sent(), IsEmpty());
  gather(1, 1, "b");
  EXPECT_THAT(sent(), ElementsAre("0: gathered abc", "1: gathered abc", "2: gathered abc"));
  for (const int rank : {0, 1, 2}) {
    gather(rank, 2, "");
  }
  EXPECT_THAT(sent(), ElementsAre("0: gathered ", "1: gathered ", "2: gathered "));
}

TEST_F(Room, NamesPesThatDoNotCome) {
  ASSERT_TRUE(enter(1));
  sent();
  pass(milliseconds(9'999));
  EXPECT_THAT(sent(), IsEmpty());
  pass(milliseconds(1));
  EXPECT_THAT(sent(), ElementsAre(AllOf(HasSubstr("1: failed shmem: PEs 0, 2 did not arrive within 10 s"),
                                        HasSubstr("10.0.0.1:9; among eth0; SHMEM_UID_SOCK_IFNAME or"))));
  EXPECT_THAT(text_of(enter(0)), HasSubstr("PEs 0, 2 did not arrive"));  // a late PE gets the same error
}

TEST_F(Room, NamesPesThatAreMissingInAStep) {
  enter_all();
  gather(1, 1, "");
  pass(milliseconds(10'000));
  EXPECT_THAT(sent(), ElementsAre(AllOf(HasSubstr("PEs 0, 2 did not arrive"), HasSubstr("step 1")),
                                  HasSubstr("1: failed"), HasSubstr("2: failed")));
}

TEST_F(Room, RefusesStrangersAndNamesThemIfAPeIsMissing) {
  ASSERT_TRUE(enter(0));
  const Challenge challenge = state_.challenge(hello(1), {7});
  const Proof stranger = prove(Secret{4, 7, 1, 2}, Prover::kPe, hello(1), challenge);
  EXPECT_THAT(
      text_of(state_.admit(hello(1), challenge, stranger, "10.0.0.66:6")),
      AllOf(HasSubstr("refused by the job at 10.0.0.1:9"), HasSubstr("PE 1"), HasSubstr("not have the secret")));
  for (int i = 0; i < 10; ++i) {
    state_.refuse("10.0.0.77:7", "it said nothing");
  }
  sent();
  pass(milliseconds(10'000));
  EXPECT_THAT(sent(),
              ElementsAre(AllOf(HasSubstr("PEs 1, 2 did not arrive"), HasSubstr("10.0.0.66:6 (it does not have the"),
                                HasSubstr("10.0.0.77:7 (it said nothing)"), HasSubstr("and 3 more"))));
}

TEST_F(Room, AdmitsAProofForItsOwnExchangeOnly) {
  const auto admits = [&](const Hello& hello, const Challenge& challenge, const Proof& proof) {
    return state_.admit(hello, challenge, proof, "10.0.0.66:6").has_value();
  };
  const Challenge challenge = state_.challenge(hello(1), {7});
  const Proof proof = prove(kSecret, Prover::kPe, hello(1), challenge);
  EXPECT_TRUE(same(challenge.proof, prove(kSecret, Prover::kServer, hello(1), challenge)));
  EXPECT_TRUE(admits(hello(1), challenge, proof));
  EXPECT_FALSE(admits(hello(1), challenge, challenge.proof)) << "the server's own proof, sent back";
  EXPECT_FALSE(admits(hello(1), challenge, Proof{}));
  EXPECT_FALSE(admits(hello(1), state_.challenge(hello(1), {8}), proof)) << "a replayed proof";
  EXPECT_FALSE(admits(hello(2), challenge, proof)) << "the proof of another PE";
  EXPECT_FALSE(admits(hello(1, 4), challenge, proof));
  Hello later = hello(1);
  later.nonce[31] = 1;
  EXPECT_FALSE(admits(later, challenge, proof));
}

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

/// The expected values were computed with Python's hmac and hashlib, and the last one with the program argon2.
TEST_F(Room, ProvesByHmacSha256) {
  Hello first = hello(1);
  first.nonce[0] = 1;
  const Challenge challenge = state_.challenge(first, {7});
  EXPECT_EQ(hexadecimal(prove(kSecret, Prover::kPe, first, challenge)),
            "114eed334d1464463c732ebe62b1cac9ae12f4bbcc2efe535fded61f5cec15a4");
  EXPECT_EQ(hexadecimal(derive_from_public("key of the test", "the job")), "ba959336d9c5756e141617e4b40c10b3");
  EXPECT_EQ(hexadecimal(derive_secret("key of the test", "the job").value()), "e0a445c7e90abec873bdf0bb6999572c");
}

/// What a reader that requires seals says of these bytes: the number of frames, or an error.
std::string frames_in(const Seals& seals, std::span<const std::byte> bytes) {
  FrameReader reader(100);
  reader.require(seals);
  reader.push(bytes);
  for (int frames = 0;; ++frames) {
    const auto frame = reader.next();
    if (!frame) {
      return frame.error().text;
    }
    if (!*frame) {
      return std::to_string(frames);
    }
  }
}

TEST_F(Room, TakesSealedFramesWholeInTheirOrderAndFromTheOtherSideOnly) {
  const Challenge challenge = state_.challenge(hello(1), {7});
  const Seals pes = state_.seals(Prover::kPe, hello(1), challenge);
  std::array<std::vector<std::byte>, 2> sealed;
  Seals seals = pes;
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    const auto frame = encode(UidFrame::kGather, static_cast<std::uint32_t>(i + 1), std::as_bytes(std::span("abc")));
    const auto seal = encode(seals.next(*frame));
    sealed[i] = *frame;
    sealed[i].insert(sealed[i].end(), seal->begin(), seal->end());
  }
  const auto both = [](std::vector<std::byte> one, const std::vector<std::byte>& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
  };
  EXPECT_EQ(frames_in(pes, both(sealed[0], sealed[1])), "2");
  EXPECT_EQ(frames_in(pes, std::span(sealed[0]).first(sealed[0].size() - 1)), "0") << "the seal has not come";
  const auto wrong = HasSubstr("by a program without the secret");
  EXPECT_THAT(frames_in(pes, both(sealed[1], sealed[0])), wrong) << "another order";
  EXPECT_THAT(frames_in(pes, both(sealed[0], sealed[0])), wrong) << "repeated";
  EXPECT_THAT(frames_in(pes, sealed[1]), wrong) << "one is missing";
  EXPECT_THAT(frames_in(state_.seals(Prover::kServer, hello(1), challenge), sealed[0]), wrong) << "sent back";
  EXPECT_THAT(frames_in(state_.seals(Prover::kPe, hello(1), state_.challenge(hello(1), {8})), sealed[0]), wrong)
      << "of another connection";
  EXPECT_THAT(frames_in(seals_of(Secret{9}, Prover::kPe, hello(1), challenge), sealed[0]), wrong);
  for (std::size_t i = sizeof(wire::FrameHeader) - 4; i < sealed[0].size(); ++i) {  // before that, it is no frame
    auto changed = sealed[0];
    changed[i] ^= std::byte{1};
    EXPECT_THAT(frames_in(pes, changed), wrong) << i;
  }
}

TEST_F(Room, EndsTheJobIfAPeDoesNotFit) {
  const std::pair<Hello, const char*> cases[] = {
      {hello(1, 5),
       "PE 1 (host kiwi, process 101, from 10.0.0.2:5) was told that the job has 5 PEs, PE 0 that it has 3"},
      {hello(3), "PE 3 (host kiwi, process 103, from 10.0.0.2:5) is not one of the job's 3 PEs, 0 to 2"},
      {hello(-1), "PE -1 (host kiwi"},
      {hello(0), "PE 0 joined twice: host kiwi, process 100, from 10.0.0.2:5; and host kiwi, process 100"}};
  for (const auto& [mismatch, text] : cases) {
    UidJobState state({.secret = kSecret, .size = 3, .server = 0, .limit = milliseconds(1), .place = "here"}, now_);
    static_cast<void>(state.join(hello(0), "10.0.0.2:5", now_));
    state.take_messages();
    EXPECT_THAT(text_of(state.join(mismatch, "10.0.0.2:5", now_)), HasSubstr(text));
    const auto messages = state.take_messages();
    ASSERT_EQ(messages.size(), 1U);
    FrameReader reader(10'000);
    reader.push(*messages[0].bytes);
    EXPECT_THAT(reader.next().value()->text(4), HasSubstr(text));
  }
}

TEST_F(Room, KeepsACompleteJobIfAPeJoinsAgain) {
  enter_all();
  EXPECT_THAT(text_of(enter(1)), HasSubstr("PE 1 joined twice"));
  EXPECT_FALSE(state_.failed());
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(Room, OfOshrunStartsAgainWhenAllPesHaveLeft) {
  UidJobState state({.secret = kSecret, .size = 3, .server = -1, .limit = milliseconds(20'000), .place = "here"}, now_);
  for (int start = 0; start < 3; ++start) {
    for (int pe = 0; pe < 3; ++pe) {
      EXPECT_FALSE(state.is_early(hello(pe)));
      ASSERT_TRUE(state.join(hello(pe), "10.0.0.2:5", now_));
    }
    EXPECT_TRUE(state.complete());
    EXPECT_TRUE(state.is_early(hello(0)));  // its kLeave may be behind
    state.receive(0, {UidFrame::kLeave, 0, {}}, now_);
    EXPECT_TRUE(state.is_early(hello(0)));
    state.receive(1, {UidFrame::kLeave, 0, {}}, now_);
    EXPECT_FALSE(state.start_again());
    state.receive(2, {UidFrame::kLeave, 0, {}}, now_);
    EXPECT_TRUE(state.start_again());
  }
  enter_all();
  EXPECT_FALSE(state_.may_start_again());  // a PE's
  EXPECT_FALSE(state_.is_early(hello(0)));
}

TEST_F(Room, NamesAPeThatHasLeftAsMissing) {
  enter_all();
  leave(1);
  state_.lose(1, "it closed its connection");
  EXPECT_FALSE(state_.failed());
  gather(0, 1, "");
  EXPECT_THAT(sent(), ElementsAre(HasSubstr("0: failed shmem: PE 1 (host kiwi, process 101, from 10.0.0.2:5)"),
                                  HasSubstr("2: failed")));
}

TEST_F(Room, NamesALostPeToTheOthers) {
  enter_all();
  state_.lose(2, "it died");
  EXPECT_THAT(sent(), ElementsAre(AllOf(HasSubstr("0: failed"), HasSubstr("PE 2 (host kiwi"), HasSubstr("it died")),
                                  HasSubstr("1: failed")));
  state_.lose(1, "it died");
  EXPECT_THAT(sent(), IsEmpty());  // only the first reason is sent
}

/// A PE that makes no calls ends by the second message.
TEST_F(Room, PassesOnThatAPeEndsAFailedJob) {
  enter_all();
  state_.lose(2, "it died");
  EXPECT_EQ(sent().size(), 2U);
  abort(1, "PE 2 is lost");
  EXPECT_THAT(sent(), ElementsAre("0: aborted PE 2 is lost", "1: aborted PE 2 is lost"));
  abort(0, "PE 2 is lost");
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(Room, ReportsPesInDifferentSteps) {
  enter_all();
  gather(0, 1, "four");
  gather(1, 1, "sixsix");
  gather(2, 1, "four");
  EXPECT_THAT(sent()[0], HasSubstr("PE 0 sends 4 bytes, PE 1 sends 6"));
}

TEST_F(Room, ReportsAPeThatIsAheadOfTheOthers) {
  enter_all();
  gather(0, 2, "");
  EXPECT_THAT(sent()[0], AllOf(HasSubstr("PE 0 (host kiwi"), HasSubstr("is in step 2"), HasSubstr("are in 1")));
}

TEST_F(Room, TellsALatePeWhichPeHasEndedTheJob) {
  ASSERT_TRUE(enter(1));
  abort(1, "out of patience");
  EXPECT_EQ(text_of(enter(2)),
            "shmem: the job was ended by PE 1 (host kiwi, process 101, from 10.0.0.2:5): out of patience");
}

TEST_F(Room, EndsTheJobOnceWithTheFirstReason) {
  enter_all();
  for (const int rank : {1, 2}) {
    abort(rank, "reason " + std::to_string(rank));
  }
  EXPECT_THAT(sent(), ElementsAre("0: aborted reason 1", "1: aborted reason 1", "2: aborted reason 1"));
}

TEST_F(Room, PrintsNoControlCharactersOfAHostsName) {
  Hello odd = hello(7);
  std::string("a\033[2Jb").copy(odd.host.data(), odd.host.size());
  EXPECT_THAT(text_of(state_.join(odd, "10.0.0.2:5", now_)), AllOf(HasSubstr("host a?[2Jb"), Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace shmem
