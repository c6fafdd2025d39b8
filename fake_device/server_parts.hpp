// SPDX-License-Identifier: Apache-2.0
// What the server decides without I/O: how it rests, which clients may stay silent, which ports are free.
#pragma once

#include <algorithm>
#include <concepts>
#include <list>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fake_device/effects.hpp"

namespace fake_device {

enum class Rest { kSpin, kYield, kSleep };

/// Pure; used by one thread.
class Pacer {
 public:
  /// Sleeps after `idle` without work. `processors`: that the device and its clients have.
  Pacer(Time idle, unsigned processors) : idle_(idle), processors_(processors) {}

  void worked(Time now) {
    last_work_ = now;
    yields_ = 0;
  }

  /// Without members there is no reason to spin. With more runnable processes than processors a spinning device keeps a
  /// member from arriving, so it yields at once; otherwise it spins for a while, since a yield delays the next arrival
  /// by a system call. It yields a few times before it sleeps: it does not know how long others ran meanwhile, and
  /// waking it costs them more.
  Rest rest(Time now, std::size_t members) {
    const Time quiet = now - last_work_;
    if (members == 0 || (quiet >= idle_ && yields_ >= kYields)) {
      return Rest::kSleep;
    }
    if (members < processors_ && quiet < std::min(idle_, kSpin)) {
      return Rest::kSpin;
    }
    ++yields_;
    return Rest::kYield;
  }

 private:
  static constexpr Time kSpin = 100 * kMicrosecond;
  static constexpr unsigned kYields = 32;
  Time idle_;
  unsigned processors_;
  Time last_work_ = 0;
  unsigned yields_ = 0;
};

/// How long a client may leave unfinished what it has begun: the connection, a message, a store.
inline constexpr Time kSilenceLimit = 10 * kSecond;

/// Oldest first. Pure; used by one thread.
class SilentClients {
 public:
  /// How long a client may be silent if another client waits for its place.
  static constexpr Time kSilenceLimitWhenFull = kSecond;

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
  /// There is a place, or one can be freed.
  [[nodiscard]] bool room(Time now) const { return !full() || clients_.front().since + kSilenceLimitWhenFull <= now; }
  /// When the next one's time is up; kNever. `wanted`: another waits for a place.
  [[nodiscard]] Time deadline(bool wanted) const {
    if (clients_.empty()) {
      return kNever;
    }
    return clients_.front().since + (wanted && full() ? kSilenceLimitWhenFull : kSilenceLimit);
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

/// When something is due of each client. Pure; used by one thread.
class Deadlines {
 public:
  /// kNever: nothing.
  void set(int socket, Time due) {
    const auto known = due_.find(socket);
    if (known != due_.end() && known->second != due) {
      queue_.erase({known->second, socket});
      due_.erase(known);
    }
    if (due != kNever && due_.try_emplace(socket, due).second) {
      queue_.emplace(due, socket);
    }
  }
  [[nodiscard]] Time next() const { return queue_.empty() ? kNever : queue_.begin()->first; }
  /// REQUIRES: next() is not kNever.
  [[nodiscard]] int first() const { return queue_.begin()->second; }

 private:
  std::set<std::pair<Time, int>> queue_;
  std::unordered_map<int, Time> due_;
};

/// When a client's descriptors are received: kAtOnce immediately, on average one each kTimeOfOne. Until then they wait
/// in its socket, and the client waits when that is full: one that sends them all the time would keep the device's
/// threads busy with receiving and closing, and the members' processors with them. Pure; used by one thread.
class FdAllowance {
 public:
  /// All vectors of the larger device, armed once.
  static constexpr std::size_t kAtOnce = 288;
  static constexpr Time kTimeOfOne = kSecond / 16'384;

  void take(std::size_t count, Time now) {
    used_until_ = std::max(used_until_, now) + count * kTimeOfOne;
    if (used_until_ - now > kAtOnce * kTimeOfOne) {
      resumes_ = used_until_;
    }
  }
  /// Those that were received are not closed yet, so there are no more until then.
  void pause_until(Time time) { resumes_ = std::max(resumes_, time); }
  /// When the next ones are received; in the past: now.
  [[nodiscard]] Time resumes() const { return resumes_; }

 private:
  Time used_until_ = 0;
  Time resumes_ = 0;
};

/// Ports first..first + count - 1. Used by one thread.
class PortPool {
 public:
  PortPool(unsigned first, unsigned count) : first_(first), taken_(count, false) {}

  /// The lowest free port that is `good`, or if none is, the lowest free one.
  template <std::predicate<unsigned> Good>
  std::optional<unsigned> take(Good good) {
    std::optional<unsigned> chosen;
    // From the highest down: the lowest of each kind is the last one that is chosen.
    for (unsigned place = static_cast<unsigned>(taken_.size()); place-- > 0;) {
      const unsigned port = first_ + place;
      if (!taken_[place] && (!chosen || good(port) || !good(*chosen))) {
        chosen = port;
      }
    }
    if (chosen) {
      taken_[*chosen - first_] = true;
    }
    return chosen;
  }
  void release(unsigned port) { taken_[port - first_] = false; }
  [[nodiscard]] std::size_t size() const { return taken_.size(); }

 private:
  unsigned first_;
  std::vector<bool> taken_;
};

}  // namespace fake_device
