// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "kv/exchange/links.hpp"
#include "kv/exchange/remote_messages.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using namespace shmem::exchange;  // NOLINT(google-build-using-namespace): what the target is about

constexpr std::size_t kAddressBytes = 8;

const wire::Secret& link_secret() {
  static const wire::Secret secret = wire::derive_from_public("a secret", "fuzzed links");
  return secret;
}

LinkIdentity link_identity(std::uint64_t id) {
  return {.member = id, .node = id, .version = 1, .messages = kRemoteProtocol, .pid = 1};
}

/// Whether there is something to read, or the end, within so many milliseconds. The fuzzer's alarms interrupt waits.
bool comes(int socket, int limit_ms) {
  pollfd readable{.fd = socket, .events = POLLIN, .revents = 0};
  return base::retry([&] { return ::poll(&readable, 1, limit_ms); }) == 1;
}

/// The links of a member that takes all readers and owners.
class FuzzedLinks {
 public:
  FuzzedLinks() : place_(*wire::parse_endpoint("127.0.0.1:0")) {
    LinkSelf self{.exchange = "fuzz",
                  .who = link_identity(1),
                  .slots = 8,
                  .secret = link_secret(),
                  .address = std::vector<std::byte>(kAddressBytes, std::byte{1})};
    LinkHandlers handlers{.reader_came = [this](const LinkedReader& reader) { return come(reader.session); },
                          .reader_left = [this](std::uint64_t /*session*/) { --present_; },
                          .owner_came = [this](const LinkedOwner& /*owner*/) { return ++present_ > 0; },
                          .owner_left = [this](std::uint64_t /*session*/) { --present_; }};
    auto links = Links::open(place_, std::move(self), std::move(handlers), counters_);
    check(bool{links}, "links can be opened");
    links_.store((own_ = *std::move(links)).get());
  }
  FuzzedLinks(const FuzzedLinks&) = delete;
  FuzzedLinks& operator=(const FuzzedLinks&) = delete;
  ~FuzzedLinks() {
    own_.reset();
    check(present_ >= 0, "the end of each session is told of once");
  }
  [[nodiscard]] const Endpoint& place() const { return place_; }
  void look_at(const Endpoint& place) { static_cast<void>(own_->connect({place}, std::chrono::milliseconds(0))); }

 private:
  bool come(std::uint64_t session) {
    ++present_;
    if (Links* const links = links_.load(); links != nullptr) {
      links->welcome(session);
    }
    return true;
  }

  Counters counters_;
  std::atomic<int> present_{0};
  Endpoint place_;
  std::unique_ptr<Links> own_;
  std::atomic<Links*> links_{nullptr};
};

/// The other end of a link, which knows the secret.
class OtherEnd {
 public:
  OtherEnd(base::UniqueFd socket, LinkSide side) : socket_(std::move(socket)), side_(side) {}

  /// u8 modulo 5. 0: raw, u16 length, bytes. 1: a frame, u8 type, u16 length, payload. 2: the frame that is due, u8
  /// number of changes, each u16 place and u8 to add; 3: the same without a seal. 4: takes a frame.
  void step(Input& input) {
    const auto kind = input.take<std::uint8_t>() % 5;
    if (kind == 0) {
      send(input.take_bytes(input.take<std::uint16_t>()));
    } else if (kind == 1) {
      const auto type = static_cast<wire::FrameType>(kLinkHelloNumber + input.take<std::uint8_t>() % 8);
      send_frame(wire::encode(type, 0, input.take_bytes(input.take<std::uint16_t>())), true);
    } else if (kind == 4) {
      receive();
    } else {
      send_due(input, kind == 2);
    }
  }
  /// Whether the handshake goes as it should with the member.
  bool greets() {
    Input nothing({});
    send_due(nothing, true);
    receive();
    return challenge_.has_value();
  }
  void end() const {
    ::shutdown(socket_.get(), SHUT_WR);
    std::array<std::byte, 4096> rest{};
    bool more = true;
    while (more) {
      check(comes(socket_.get(), 20'000), "a connection whose other end is gone ends");
      more = ::recv(socket_.get(), rest.data(), rest.size(), 0) > 0;
    }
  }

 private:
  static constexpr unsigned kLinkHelloNumber = static_cast<unsigned>(kLinkHello);

  void send(std::span<const std::byte> bytes) const {
    static_cast<void>(
        wire::send_all(socket_.get(), bytes, std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  }
  void send_frame(const wire::FrameBytes& frame, bool sealed) {
    send(*frame);
    if (sealed && seals_) {
      send(*wire::encode(seals_->next(*frame)));
    }
  }
  template <typename T>
  static void change(T& value, Input& input) {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    for (auto left = input.take<std::uint8_t>() % 4; left > 0; --left) {
      auto& byte = bytes[input.take<std::uint16_t>() % bytes.size()];
      byte = static_cast<std::byte>(std::to_integer<unsigned>(byte) + input.take<std::uint8_t>());
    }
    std::memcpy(&value, bytes.data(), sizeof value);
  }
  template <typename T>
  void send_changed(wire::FrameType type, T head, Input& input, bool sealed, std::span<const std::byte> rest = {}) {
    change(head, input);
    send_frame(wire::encode(type, 0, std::as_bytes(std::span(&head, 1)), rest), sealed);
  }

  void send_due(Input& input, bool sealed) {
    const std::array<std::byte, kAddressBytes> address{std::byte{2}};
    if (side_ == LinkSide::kReader && !hello_) {
      LinkHello hello;
      hello.who = link_identity(2);
      change(hello, input);
      hello_ = hello;
      send_frame(wire::encode(kLinkHello, 0, std::as_bytes(std::span(&hello, 1))), false);
    } else if (side_ == LinkSide::kReader) {
      send_changed(kLinkAnswer, LinkAnswer{.answers = 5, .place = {.family = 4, .port = 1, .address = {127, 0, 0, 1}}},
                   input, sealed, address);
    } else if (!hello_) {
      receive();
    } else if (!challenge_) {
      LinkChallenge challenge;
      challenge.who = link_identity(2);
      change(challenge, input);
      challenge.proof = prove_owner(link_secret(), *hello_, challenge);
      challenge_ = challenge;
      send_frame(wire::encode(kLinkChallenge, 0, std::as_bytes(std::span(&challenge, 1))), false);
      seals_ = link_seals(link_secret(), side_, *hello_, challenge);
    } else if (!welcomed_) {
      welcomed_ = true;
      send_changed(kLinkWelcome, LinkWelcome{.requests = 6, .slots = 8}, input, sealed, address);
    } else {
      send_changed(kLinkMembers, WireEndpoint{.family = 4, .port = 1, .address = {127, 0, 0, 1}}, input, sealed);
    }
  }

  /// What has come, and what comes soon: the other side's first frame.
  void receive() {
    std::array<std::byte, 4096> bytes{};
    const bool is_due = side_ == LinkSide::kReader ? hello_ && !challenge_ : !hello_;
    if (!comes(socket_.get(), is_due ? 1000 : 0)) {
      return;
    }
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    reader_.push(std::span(bytes).first(static_cast<std::size_t>(got > 0 ? got : 0)));
    const auto frame = reader_.next();
    if (!frame || !*frame) {
      return;
    }
    if (side_ == LinkSide::kOwner && !hello_) {
      hello_ = (*frame)->head<LinkHello>();
    } else if (side_ == LinkSide::kReader && hello_ && !challenge_ && (*frame)->type == kLinkChallenge) {
      challenge_ = (*frame)->head<LinkChallenge>();
      check(challenge_ && wire::same(challenge_->proof, prove_owner(link_secret(), *hello_, *challenge_)),
            "the owner proves itself");
      seals_ = link_seals(link_secret(), side_, *hello_, *challenge_);
    }
  }

  base::UniqueFd socket_;
  const LinkSide side_;
  wire::FrameReader reader_{std::size_t{1} << 20};
  std::optional<LinkHello> hello_;
  std::optional<LinkChallenge> challenge_;
  bool welcomed_ = false;
  std::optional<wire::Seals> seals_;
};

base::UniqueFd connection_to(const FuzzedLinks& links) {
  auto socket = wire::connect_to(links.place(), std::chrono::steady_clock::now() + std::chrono::seconds(20));
  check(bool{socket}, "a member can be connected to");
  return *std::move(socket);
}

void run_steps(OtherEnd end, Input& input) {
  for (int i = 0; i < 24 && !input.empty(); ++i) {
    end.step(input);
  }
  end.end();
}

}  // namespace

void run_links(std::span<const std::byte> bytes) {
  Input input(bytes);
  FuzzedLinks links;
  if (input.take<std::uint8_t>() % 2 == 0) {
    run_steps(OtherEnd(connection_to(links), LinkSide::kReader), input);
  } else {
    Endpoint place = *wire::parse_endpoint("127.0.0.1:0");
    base::UniqueFd listener = *wire::listen_at(place);
    links.look_at(place);
    check(comes(listener.get(), 20'000), "a member connects to a place that it is told of");
    base::UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    listener.reset();
    run_steps(OtherEnd(std::move(socket), LinkSide::kOwner), input);
  }
  OtherEnd good(connection_to(links), LinkSide::kReader);
  check(good.greets(), "a member goes on after a stranger");
  good.end();
}

}  // namespace fuzz
