// SPDX-License-Identifier: Apache-2.0
// The frames of links: both sides prove themselves, and tell each other how messages reach them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kv/exchange/directory_layout.hpp"
#include "kv/exchange/links.hpp"
#include "kv/exchange/remote_messages.hpp"

namespace shmem::exchange {
namespace {

/// Until a place is tried again at which a member is that needs no link, or that has one by another address.
constexpr std::chrono::seconds kAfterDecline{5};

/// What a program has said that may know no secret: a line of at most that length, for terminals.
std::string printable(std::string text) {
  constexpr std::size_t kMostText = 300;
  text.resize(std::min(text.size(), kMostText));
  std::replace_if(
      text.begin(), text.end(), [](char character) { return character < ' ' || character > '~'; }, '?');
  return text;
}

}  // namespace

bool Links::take_frames(Connection& connection) {
  while (true) {
    auto frame = connection.next();
    if (!frame && !connection.outgoing && frame.error().code == std::errc::permission_denied &&
        connection.state == LinkConnection::State::kProving) {
      return refuse(connection, "the proof of the secret is wrong");
    }
    if (!frame) {
      note_refusal(connection, frame.error().text);
      return false;
    }
    if (!*frame) {
      return true;
    }
    if (!take(connection, **frame)) {
      return false;
    }
  }
}

bool Links::take(Connection& connection, const Frame& frame) {
  if (frame.type == kLinkRefused && connection.outgoing) {
    note_refusal(connection, fmt::format("it says: {}", printable(frame.text(0))));
    return false;
  }
  switch (connection.state) {
    case LinkConnection::State::kConnecting:
    case LinkConnection::State::kAdmitted:
      break;
    case LinkConnection::State::kGreeting:
      return connection.outgoing ? prove(connection, frame) : challenge(connection, frame);
    case LinkConnection::State::kProving:
      return connection.outgoing ? join(connection, frame) : admit(connection, frame);
    case LinkConnection::State::kLinked:
      if (connection.outgoing && frame.type == kLinkMembers) {
        for (const Endpoint& place : members_of(frame)) {
          if (!places_.contains(place.text())) {
            add_place(place, Source::kOther);
          }
        }
        if (LinkTarget* const place = find_place(connection)) {
          place->was_tried = true;  // with those that it has told of
        }
        return true;
      }
      break;
  }
  note_refusal(connection, "it does not follow the protocol");
  return false;
}

std::string Links::mismatch(const LinkIdentity& other) const {
  if (other.messages != self_.who.messages) {
    return "they have different versions of libshmem: install the same one on all nodes";
  }
  if (other.version != self_.who.version) {
    return fmt::format("one has UCX {}.{}, the other {}.{}: install the same version on all nodes", other.version >> 32,
                       static_cast<std::uint32_t>(other.version), self_.who.version >> 32,
                       static_cast<std::uint32_t>(self_.who.version));
  }
  return {};
}

// ---- As a reader ----

bool Links::greet(Connection& connection) {
  if (!wire::fill_randomly(connection.hello.nonce, "a link of an exchange")) {
    return false;
  }
  connection.hello.who = self_.who;
  return connection.send(kLinkHello, connection.hello);
}

bool Links::prove(Connection& connection, const Frame& frame) {
  const auto challenge = frame.head<LinkChallenge>();
  if (frame.type != kLinkChallenge || !challenge) {
    note_refusal(connection, "it does not follow the protocol");
    return false;
  }
  // It proves itself first: a program that does not know the secret gets nothing that depends on the secret.
  if (!wire::same(challenge->proof, prove_owner(self_.secret, connection.hello, *challenge))) {
    note_refusal(connection, "it does not know the secret of this exchange, or has joined another one");
    return false;
  }
  connection.challenge = *challenge;
  connection.seal(self_.secret, LinkSide::kOwner);
  connection.seal(self_.secret, LinkSide::kReader);
  if (const std::string why = mismatch(challenge->who); !why.empty()) {
    note_refusal(connection, why);
    return false;
  }
  const LinkIdentity& owner = challenge->who;
  if (owner.member == self_.who.member || owner.node == self_.who.node || find_member(owner.member, true) != nullptr) {
    if (LinkTarget* const place = find_place(connection)) {
      place->next = Clock::now() + kAfterDecline;
    }
    note_reached(connection);
    connection.declined = true;
    connection.send(encode(kLinkDecline, 0, {}));
    return false;
  }
  const LinkAnswer answer{.answers = random_number(), .place = to_wire(place_)};
  connection.session = answer.answers;
  connection.state = LinkConnection::State::kProving;
  return answer.answers != 0 && connection.send(kLinkAnswer, answer, self_.address);
}

bool Links::join(Connection& connection, const Frame& frame) {
  const auto welcome = frame.head<LinkWelcome>();
  auto address = port_address_of<LinkWelcome>(frame);
  if (frame.type != kLinkWelcome || !welcome || !address || welcome->slots < 1 || welcome->slots > kMostSlots) {
    note_refusal(connection, "it does not follow the protocol");
    return false;
  }
  if (!handlers_.owner_came({.who = connection.challenge.who,
                             .session = connection.session,
                             .requests = welcome->requests,
                             .slots = welcome->slots,
                             .place = connection.place.text(),
                             .address = *std::move(address)})) {
    return false;
  }
  connection.member = connection.challenge.who.member;
  connection.state = LinkConnection::State::kLinked;
  note_reached(connection);
  if (LinkTarget* const place = find_place(connection)) {
    place->failures = 0;
    place->was_linked = true;
  }
  return true;
}

// ---- As an owner ----

bool Links::refuse(Connection& connection, const std::string& why) {
  add(counters_.refused);
  connection.state = LinkConnection::State::kGreeting;
  connection.send(encode(kLinkRefused, 0, {}, std::as_bytes(std::span(why))));
  return false;
}

bool Links::challenge(Connection& connection, const Frame& frame) {
  const auto hello = frame.head<LinkHello>();
  if (frame.type != kLinkHello || !hello || hello->protocol != kLinkProtocol) {
    return refuse(connection, "a member of an exchange listens here, and this is not a message of another one");
  }
  connection.hello = *hello;
  connection.challenge.who = self_.who;
  if (!wire::fill_randomly(connection.challenge.nonce, "a link of an exchange")) {
    return false;
  }
  connection.challenge.proof = prove_owner(self_.secret, connection.hello, connection.challenge);
  connection.state = LinkConnection::State::kProving;
  const bool sent = connection.send(kLinkChallenge, connection.challenge);
  connection.seal(self_.secret, LinkSide::kOwner);
  connection.seal(self_.secret, LinkSide::kReader);
  return sent;
}

bool Links::admit(Connection& connection, const Frame& frame) {
  if (frame.type == kLinkDecline) {
    connection.state = LinkConnection::State::kGreeting;
    return false;
  }
  const auto answer = frame.head<LinkAnswer>();
  auto address = port_address_of<LinkAnswer>(frame);
  if (frame.type != kLinkAnswer || !answer || !address) {
    return refuse(connection, "this is not a message of a member");
  }
  if (const std::string why = mismatch(connection.hello.who); !why.empty()) {
    return refuse(connection, why);
  }
  if (Connection* const earlier = find_member(connection.hello.who.member, false); earlier != nullptr) {
    drop(*earlier);  // its end has not been noticed yet
  }
  if (count(false, true) >= kMostLinks) {
    return refuse(connection, fmt::format("this member has {} readers on other nodes already", kMostLinks));
  }
  connection.session = random_number();
  if (connection.session == 0 || !handlers_.reader_came({.member = connection.hello.who.member,
                                                         .session = connection.session,
                                                         .answers = answer->answers,
                                                         .address = *std::move(address)})) {
    return refuse(connection, "this member has no memory for another reader");
  }
  connection.member = connection.hello.who.member;
  connection.state = LinkConnection::State::kAdmitted;
  connection.listens = from_wire(answer->place);
  return true;
}

/// The reader sends requests from now on. If they came before messages can go to it, UCX 1.13 would have to keep its
/// own answer to the first of them, and would end this process if the reader died then (its assertion "got REP
/// message").
bool Links::welcome(Connection& connection) {
  if (connection.outgoing || connection.state != LinkConnection::State::kAdmitted) {
    return true;
  }
  connection.state = LinkConnection::State::kLinked;
  const LinkWelcome welcome{.requests = connection.session, .slots = self_.slots};
  if (!connection.send(kLinkWelcome, welcome, self_.address)) {
    return false;
  }
  send_members(connection);
  if (connection.listens) {
    add_place(*connection.listens, Source::kItself);  // this member wants to read its blocks, too
  }
  return true;
}

/// Where the other members are that this one knows. Those that come later connect to all by themselves.
void Links::send_members(Connection& connection) {
  std::vector<WireEndpoint> places;
  for (const auto& other : connections_) {
    const auto place = other->outgoing ? std::optional(other->place) : other->listens;
    if (!other->dropped && other.get() != &connection && other->state == LinkConnection::State::kLinked && place &&
        places.size() < kMostLinkMembers) {
      places.push_back(to_wire(*place));
    }
  }
  connection.send(encode(kLinkMembers, 0, std::as_bytes(std::span(places))));
}

/// What is wrong with the member at the other end. For a place that the program has named, also said to the program.
void Links::note_refusal(Connection& connection, const std::string& why) {
  add(counters_.refused);
  connection.failure = why;
  const auto place = places_.find(connection.place.text());
  if (!connection.outgoing || place == places_.end() || !place->second.is_seed) {
    return;
  }
  const std::lock_guard lock(mutex_);
  refusal_ = fmt::format("the member at {} cannot be linked with this one: {}", connection.place.text(), why);
  joined_changed_.notify_all();
}

/// Not 0, unless the system gives no random bits.
std::uint64_t Links::random_number() {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  std::uint64_t number = 0;
  while (number == 0 && wire::fill_randomly(bytes, "a link of an exchange")) {
    std::memcpy(&number, bytes.data(), sizeof number);
  }
  return number;
}

}  // namespace shmem::exchange
