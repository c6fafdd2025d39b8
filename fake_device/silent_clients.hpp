// SPDX-License-Identifier: Apache-2.0
// Clients that have connected and not said VERSION yet: few of them must not keep others out.
#pragma once

#include <list>
#include <unordered_map>

#include "fake_device/clock.hpp"

namespace fake_device {

/// Oldest first. Pure; used by one thread.
class SilentClients {
 public:
  /// How long a client may say nothing, and how long where another waits for its place.
  static constexpr Time kPatience = 10 * kSecond;
  static constexpr Time kPatienceWhenFull = kSecond;

  explicit SilentClients(std::size_t most) : most_(most) {}

  void add(int socket, Time now) {
    places_[socket] = clients_.insert(clients_.end(), {.socket = socket, .since = now});
  }
  /// It has spoken or is gone; nothing happens if it is not here.
  void remove(int socket) {
    if (const auto place = places_.find(socket); place != places_.end()) {
      clients_.erase(place->second);
      places_.erase(place);
    }
  }

  [[nodiscard]] std::size_t size() const { return clients_.size(); }
  [[nodiscard]] bool full() const { return clients_.size() >= most_; }
  /// There is a place, or one can be taken from somebody.
  [[nodiscard]] bool room(Time now) const { return !full() || clients_.front().since + kPatienceWhenFull <= now; }
  /// When the next one's time is up; kNever. `wanted`: another waits for a place.
  [[nodiscard]] Time deadline(bool wanted) const {
    if (clients_.empty()) {
      return kNever;
    }
    return clients_.front().since + (wanted && full() ? kPatienceWhenFull : kPatience);
  }
  /// REQUIRES: size() > 0.
  [[nodiscard]] int oldest() const { return clients_.front().socket; }

 private:
  struct Client {
    int socket;
    Time since;
  };
  const std::size_t most_;
  std::list<Client> clients_;
  std::unordered_map<int, std::list<Client>::iterator> places_;
};

}  // namespace fake_device
