// SPDX-License-Identifier: Apache-2.0
// What a holder has, stores and removes, as lines, so that others can rebuild an index of its blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <string>

#include "base/fd.hpp"
#include "tools/kv_exchange/member.hpp"
#include "wire/listener.hpp"

namespace kv_exchange {

/// A list of the holder's blocks first, and again whenever events were lost; then events.
class EventLines {
 public:
  /// `member` outlives this.
  explicit EventLines(Member& member) : member_(member) {}

  /// Adds the next lines to `text`, some hundred at most, and waits for the first. False: there is no holder at the
  /// moment, or none whose blocks this member sees.
  Result<bool> next(std::string& text, std::chrono::nanoseconds limit);

 private:
  /// False: this member does not see its blocks yet.
  bool begin_list(std::string& text);
  void go_on_with_list(std::string& text);

  Member& member_;
  shmemx_exchange_position_t position_{};
  bool lists_ = false;
  std::uint32_t seat_ = 0;    // of the holder whose blocks are listed
  std::uint64_t cursor_ = 0;  // in that list
};

/// Sends those lines to all who connect. Used by one thread, which none of them can make wait: one that reads slowly
/// gets its lines later, and a list if events were lost by then.
class EventServer {
 public:
  /// `address`: a port of 127.0.0.1, or an address and a port; port 0: any.
  static Result<EventServer> listen(const std::string& address);

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Accepts, reads, sends; returns after a moment. `member` is the same each time.
  void turn(Member& member);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kWaits, kHasMore, kOver };
  struct Subscriber {
    [[nodiscard]] bool has_taken_all() const { return sent == text.size(); }

    base::UniqueFd socket;
    EventLines lines;
    std::string text{};
    std::size_t sent = 0;            // of the text
    Clock::time_point taken_last{};  // when it has taken lines, or there were none
  };

  EventServer(base::UniqueFd socket, std::uint16_t port);
  void wait_for_sockets() const;
  void accept(Member& member);
  static State serve(Subscriber& one);

  wire::Listener listener_;
  std::uint16_t port_;
  std::list<Subscriber> subscribers_;
  bool has_more_ = false;  // lines for one that has taken all
};

}  // namespace kv_exchange
