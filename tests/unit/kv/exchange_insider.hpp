// SPDX-License-Identifier: Apache-2.0
// A member on another node that knows the secret and does not keep to the protocol.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "kv/exchange/links.hpp"
#include "kv/exchange/remote_messages.hpp"
#include "tests/unit/kv/exchange_nodes.hpp"
#include "wire/message_port.hpp"

namespace exchange_test {

using shmem::exchange::BodyWriter;
using shmem::exchange::Counters;
using shmem::exchange::LinkedOwner;
using shmem::exchange::LinkedReader;
using shmem::exchange::Links;
using shmem::exchange::LinkSelf;
using shmem::exchange::RemoteHead;
using wire::Endpoint;
using wire::MessagePort;
using wire::PortMessage;

constexpr std::uint32_t kInsiderSlots = 8;

/// A member that knows the secret, and says what a test wants.
class Insider {
 public:
  Insider(const std::string& exchange, std::uint64_t id, std::uint32_t slots = kInsiderSlots)
      : port_(*wire::make_message_port({.receive = [this](auto head, auto body) { take(head, body); },
                                        .lost = [](std::uint64_t /*route*/, const std::string& /*why*/) {},
                                        .turn = [] { return false; }},
                                       false)),
        place_(*wire::parse_endpoint("127.0.0.1:0")) {
    LinkSelf self{.who = {.member = id,
                          .node = id,
                          .version = port_->version(),
                          .messages = shmem::exchange::kRemoteProtocol,
                          .pid = 1},
                  .slots = slots,
                  .secret = *wire::derive_secret("a secret", "exchange " + exchange),
                  .address = port_->address()};
    const std::lock_guard lock(mutex_);
    links_ = *Links::open(place_, std::move(self),
                          {.reader_came =
                               [this](LinkedReader reader) {
                                 const std::uint64_t session = reader.session;
                                 note(reader_, std::move(reader));
                                 const std::lock_guard held(mutex_);
                                 if (links_ != nullptr) {
                                   links_->welcome(session);
                                 }
                                 return true;
                               },
                           .reader_left = [this](std::uint64_t session) { note_end(reader_, session); },
                           .owner_came = [this](LinkedOwner owner) { return note(owner_, std::move(owner)); },
                           .owner_left = [this](std::uint64_t session) { note_end(owner_, session); }},
                          counters_);
  }
  Insider(const Insider&) = delete;
  Insider& operator=(const Insider&) = delete;
  ~Insider() {
    std::unique_ptr<Links> links;
    {
      const std::lock_guard lock(mutex_);
      links = std::move(links_);
    }
    links.reset();
    port_.reset();
  }

  [[nodiscard]] std::string place() const { return place_.text(); }
  void connect(const Member& member) {
    EXPECT_TRUE(links_->connect({*wire::parse_endpoint(address_of(member))}, kLong));
  }

  /// As a reader: sends a message to the owner.
  void ask(RemoteHead head, std::span<const std::byte> body) {
    ASSERT_TRUE(wait([&] { return owner_.has_value(); }));
    head.session = owner_->requests;
    send(owner_->address, head, body);
  }
  /// The same, and waits for an answer.
  bool ask_and_get_answer(const RemoteHead& head, std::span<const std::byte> body) {
    const std::size_t before = answers();
    ask(head, body);
    for (int i = 0; i < 5'000 && answers() == before; ++i) {
      ::usleep(1000);
    }
    return answers() == before + 1;
  }
  /// As an owner: what to answer each request with.
  void answer_with(std::function<std::optional<PortMessage>(RemoteHead)> answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  /// The member has ended the link.
  [[nodiscard]] bool is_ended() {
    return wait([&] { return ended_; });
  }
  [[nodiscard]] std::size_t answers() {
    const std::lock_guard lock(mutex_);
    return answers_;
  }

  static PortMessage message_of(const RemoteHead& head, std::span<const std::byte> body) {
    BodyWriter writer(body.size() + 1);
    writer.add_bytes(body.data(), body.size());
    return writer.take(head);
  }

 private:
  void send(const std::vector<std::byte>& address, const RemoteHead& head, std::span<const std::byte> body) {
    port_->send(port_->open(address), message_of(head, body));
  }
  void take(std::span<const std::byte> bytes, std::span<const std::byte> /*body*/) {
    auto head = shmem::exchange::read_remote_head(bytes);
    const std::lock_guard lock(mutex_);
    ++answers_;
    if (!head || !answer_ || !reader_) {
      return;
    }
    head->session = reader_->answers;
    if (auto answer = answer_(*head)) {
      if (!route_) {
        route_ = port_->open(reader_->address);
      }
      port_->send(*route_, *std::move(answer));
    }
  }
  /// The first link of each kind is the one that a test is about, and those that follow its end; other members come as
  /// well.
  template <typename T>
  bool note(std::optional<T>& where, T what) {
    const std::lock_guard lock(mutex_);
    if (!where || ended_) {
      where = std::move(what);
      route_.reset();
    }
    changed_.notify_all();
    return true;
  }
  template <typename T>
  void note_end(const std::optional<T>& link, std::uint64_t session) {
    const std::lock_guard lock(mutex_);
    ended_ = ended_ || (link && link->session == session);
    changed_.notify_all();
  }
  template <typename Done>
  bool wait(Done done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, done);
  }

  Counters counters_;
  std::mutex mutex_;  // for the next six
  std::condition_variable changed_;
  std::optional<LinkedReader> reader_;
  std::optional<LinkedOwner> owner_;
  bool ended_ = false;
  std::optional<std::uint64_t> route_;
  std::size_t answers_ = 0;
  std::function<std::optional<PortMessage>(RemoteHead)> answer_;
  std::unique_ptr<MessagePort> port_;
  Endpoint place_;
  std::unique_ptr<Links> links_;
};

/// A test of a member beside an owner that answers as the test says.
class InsiderTest : public NodesTest {
 protected:
  void make_beside(int number, std::uint32_t answer_ms = kLongMs) {
    name_ = exchange_name(number);
    insider_ = std::make_unique<Insider>(name_, 666);
    reader_ = connected_member(name_, "node 2", insider_->place(), {}, answer_ms);
    ASSERT_EQ(reader_->stats().members, 1U);
  }

  std::unique_ptr<Insider> insider_;
};

}  // namespace exchange_test
