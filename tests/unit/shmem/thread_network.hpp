// SPDX-License-Identifier: Apache-2.0
// A network between threads of the test that delivers messages, late and with failures if the test wants.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <tuple>

#include "shmem/net/network.hpp"

namespace shmem_test {

/// The state that all PEs share. Messages of up to kEager bytes are copied at once; longer ones stay in the sender's
/// memory until they are received, and the sender waits.
class Wires {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kEager = 64;

  struct Message {
    std::uint64_t request;  // of the sender; 0: it does not wait
    const std::byte* from;
    std::size_t bytes;
    std::vector<std::byte> copy;
    Clock::time_point comes;
  };
  struct Receive {
    std::uint64_t request;
    std::byte* to;
    std::size_t bytes;
  };
  /// The messages and receives of one pair and tag.
  struct Channel {
    std::deque<Message> messages;
    std::deque<Receive> receives;
  };
  enum class State : std::uint8_t { kUnderWay, kDone, kWrongLength };

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::tuple<int, int, std::uint64_t>, Channel> channels;  // from, to, tag
  std::map<std::uint64_t, State> requests;
  std::uint64_t last_request = 0;
  /// The longest delay of a message.
  std::chrono::microseconds latest{0};

  /// The number of requests that were neither waited for nor cancelled.
  std::size_t under_way() {
    const std::scoped_lock lock(mutex);
    return requests.size();
  }
  /// The number of messages that were not received.
  std::size_t left() {
    const std::scoped_lock lock(mutex);
    std::size_t messages = 0;
    for (const auto& [key, channel] : channels) {
      messages += channel.messages.size();
    }
    return messages;
  }

  // With the mutex held:
  void match(Channel& channel) {
    while (!channel.messages.empty() && !channel.receives.empty() && channel.messages.front().comes <= Clock::now()) {
      const Message& message = channel.messages.front();
      const Receive& receive = channel.receives.front();
      const State state = message.bytes == receive.bytes ? State::kDone : State::kWrongLength;
      if (state == State::kDone && message.bytes != 0) {
        std::memcpy(receive.to, message.from, message.bytes);
      }
      requests[receive.request] = state;
      if (message.request != 0) {
        requests[message.request] = State::kDone;
      }
      channel.messages.pop_front();
      channel.receives.pop_front();
      changed.notify_all();
    }
  }
  void match_all() {
    for (auto& [key, channel] : channels) {
      match(channel);
    }
    std::erase_if(channels,
                  [](const auto& entry) { return entry.second.messages.empty() && entry.second.receives.empty(); });
  }
  void forget(std::uint64_t request) {
    for (auto& [key, channel] : channels) {
      std::erase_if(channel.messages, [&](const Message& message) { return message.request == request; });
      std::erase_if(channel.receives, [&](const Receive& receive) { return receive.request == request; });
    }
    requests.erase(request);
  }
};

/// One PE's end. Only messages are implemented; other operations return an error.
class ThreadNetwork : public shmem::Network {
 public:
  ThreadNetwork(Wires& wires, int me, std::chrono::milliseconds limit, unsigned seed = 0)
      : wires_(wires), me_(me), limit_(limit), random_(seed + static_cast<unsigned>(me)) {}

  /// Sends, receives and waits fail from the `call`th on.
  void fail_at(int call) { fail_at_ = call; }
  /// Messages from and to that PE fail from now on.
  void lose(int pe) { lost_.insert(pe); }

  shmem::Result<std::uint64_t> start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) override {
    if (++calls_ >= fail_at_ || has_lost(pe)) {
      return broken();
    }
    if (tag >> kTagBits != 0) {
      return shmem::fail(std::errc::invalid_argument, "a tag of too many bits");
    }
    const std::scoped_lock lock(wires_.mutex);
    Wires::Channel& channel = wires_.channels[{me_, pe, tag}];
    const std::uint64_t request = ++wires_.last_request;
    const bool eager = bytes <= Wires::kEager;
    wires_.requests[request] = eager ? Wires::State::kDone : Wires::State::kUnderWay;
    Wires::Message message{.request = eager ? 0 : request,
                           .from = static_cast<const std::byte*>(from),
                           .bytes = bytes,
                           .copy = {},
                           .comes = Wires::Clock::now() + delay()};
    if (eager) {
      message.copy.assign(message.from, message.from + bytes);
      message.from = message.copy.data();
    }
    channel.messages.push_back(std::move(message));
    wires_.match(channel);
    return request;
  }
  shmem::Result<std::uint64_t> start_receive(int pe, std::uint64_t tag, void* to, std::size_t bytes) override {
    if (++calls_ >= fail_at_ || has_lost(pe)) {
      return broken();
    }
    if (tag >> kTagBits != 0) {
      return shmem::fail(std::errc::invalid_argument, "a tag of too many bits");
    }
    const std::scoped_lock lock(wires_.mutex);
    Wires::Channel& channel = wires_.channels[{pe, me_, tag}];
    const std::uint64_t request = ++wires_.last_request;
    wires_.requests[request] = Wires::State::kUnderWay;
    channel.receives.push_back({request, static_cast<std::byte*>(to), bytes});
    wires_.match(channel);
    return request;
  }
  shmem::Result<void> wait(std::uint64_t request, std::optional<std::chrono::nanoseconds> limit) override {
    const auto deadline = Wires::Clock::now() + limit.value_or(limit_);
    const bool fails = ++calls_ >= fail_at_;
    std::unique_lock lock(wires_.mutex);
    while (!fails && wires_.requests.at(request) == Wires::State::kUnderWay && Wires::Clock::now() < deadline) {
      wires_.changed.wait_for(lock, std::chrono::microseconds(200));
      wires_.match_all();
    }
    const Wires::State state = wires_.requests.at(request);
    wires_.forget(request);
    if (fails) {
      return broken();
    }
    if (state == Wires::State::kUnderWay) {
      return shmem::fail(std::errc::timed_out, "shmem: nothing came");
    }
    return outcome(state);
  }
  shmem::Result<bool> test(std::uint64_t request) override {
    const std::scoped_lock lock(wires_.mutex);
    wires_.match_all();
    const Wires::State state = wires_.requests.at(request);
    const bool fails = ++calls_ >= fail_at_ || (state == Wires::State::kUnderWay && is_from_a_lost_pe(request));
    if (fails || state != Wires::State::kUnderWay) {
      wires_.forget(request);
    }
    if (fails) {
      return broken();
    }
    if (state == Wires::State::kUnderWay) {
      return false;
    }
    const auto ok = outcome(state);
    return ok ? shmem::Result<bool>(true) : ok.error();
  }
  void cancel(std::uint64_t request) override {
    const std::scoped_lock lock(wires_.mutex);
    wires_.forget(request);
  }

  shmem::Result<std::vector<std::byte>> add_segment(shmem::Segment /*segment*/,
                                                    std::span<std::byte> /*memory*/) override {
    return absent();
  }
  void attach_segment(shmem::Segment /*segment*/, std::vector<shmem::SegmentAddress> /*places*/) override {}
  void remove_segment(shmem::Segment /*segment*/) override {}
  bool advance() override { return false; }
  void sleep(std::chrono::nanoseconds longest) override {
    std::unique_lock lock(wires_.mutex);
    wires_.changed.wait_for(lock, longest);
  }
  void wake() override { wires_.changed.notify_all(); }
  [[nodiscard]] bool has_come(const shmem::TagPattern& /*pattern*/) override { return false; }
  [[nodiscard]] bool has_lost(int pe) const override { return lost_.contains(pe); }
  [[nodiscard]] std::optional<shmem::Error> lost() const override { return {}; }
  [[nodiscard]] std::string describe() const override { return "threads"; }

  shmem::Result<void> put(const shmem::RemotePlace& /*to*/, const void* /*from*/, std::size_t /*bytes*/) override {
    return absent();
  }
  shmem::Result<void> get(void* /*to*/, const shmem::RemotePlace& /*from*/, std::size_t /*bytes*/) override {
    return absent();
  }
  shmem::Result<void> start_put(const shmem::RemotePlace& /*to*/, const void* /*from*/,
                                std::size_t /*bytes*/) override {
    return absent();
  }
  shmem::Result<void> start_get(void* /*to*/, const shmem::RemotePlace& /*from*/, std::size_t /*bytes*/) override {
    return absent();
  }
  shmem::Result<std::uint64_t> fetch_atomic(const shmem::RemotePlace& /*word*/, std::size_t /*size*/,
                                            shmem::AtomicOperation /*operation*/, std::uint64_t /*operand*/,
                                            std::uint64_t /*compared*/) override {
    return absent();
  }
  shmem::Result<void> post_atomic(const shmem::RemotePlace& /*word*/, std::size_t /*size*/,
                                  shmem::AtomicOperation /*operation*/, std::uint64_t /*operand*/) override {
    return absent();
  }
  shmem::Result<void> fence(shmem::PeChoice /*pes*/) override { return absent(); }
  shmem::Result<void> quiet(shmem::PeChoice /*pes*/) override { return absent(); }

 private:
  static constexpr int kTagBits = 48;

  static shmem::Error absent() { return shmem::fail(std::errc::not_supported, "messages only"); }
  static shmem::Error broken() { return shmem::fail(std::errc::io_error, "the test broke it"); }
  // REQUIRES: the mutex.
  [[nodiscard]] bool is_from_a_lost_pe(std::uint64_t request) const {
    return std::ranges::any_of(wires_.channels, [&](const auto& entry) {
      return lost_.contains(std::get<0>(entry.first)) &&
             std::ranges::any_of(entry.second.receives, [&](const auto& one) { return one.request == request; });
    });
  }
  static shmem::Result<void> outcome(Wires::State state) {
    if (state == Wires::State::kWrongLength) {
      return shmem::fail(std::errc::message_size, "of another length");
    }
    return {};
  }
  std::chrono::microseconds delay() {
    // Delays only some, so that messages of other tags overtake them.
    if (wires_.latest.count() == 0 || random_() % 4 != 0) {
      return std::chrono::microseconds(0);
    }
    return std::chrono::microseconds(random_() % static_cast<unsigned long>(wires_.latest.count()));
  }

  Wires& wires_;
  int me_;
  std::chrono::milliseconds limit_;
  std::minstd_rand random_;
  int calls_ = 0;
  int fail_at_ = INT32_MAX;
  std::set<int> lost_;
};

}  // namespace shmem_test
