// SPDX-License-Identifier: Apache-2.0
// Waiting for other PEs while making progress.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <system_error>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/config/log.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/net/ucx/peers.hpp"

namespace shmem {

struct Never {
  bool operator()() const { return false; }
};

/// How one PE's end of the network waits. Thread-safe.
///
/// Not a WaitMonitor: that is a layer above (shmem/barrier) and reads the metadata of PEs on this node. Here the
/// awaited PE is on another node, UCX alone tells whether it is lost, and the end of the wait is a request's, not a
/// word's.
class UcxWaitPolicy {
 public:
  UcxWaitPolicy(const Bootstrap& world, UcxWorker& worker, const NetworkSettings& settings)
      : world_(world), worker_(worker), limit_(settings.limit), warning_(settings.warning), policy_(settings.policy) {}

  /// Waits until done(). Errors: timed_out after the limit; operation_canceled once the job has ended; connection_reset
  /// if `peer` is lost and done() does not hold a moment later; owner_dead once interrupted(), which is asked when the
  /// caller has stopped spinning.
  template <std::predicate Done, std::predicate Interrupted = Never>
  std::errc wait(Done done, const UcxPeer* peer, std::optional<std::chrono::nanoseconds> own_limit = {},
                 Interrupted interrupted = {}) {
    if (done()) {
      return {};  // without progress, which is a system call
    }
    const std::chrono::nanoseconds limit = own_limit.value_or(limit_);
    const bool for_ever = !own_limit && limit_.count() == 0;
    Clock::time_point start{};  // set at the first look at the clock
    std::chrono::nanoseconds next_warning = warning_.count() != 0 ? warning_ : std::chrono::nanoseconds::max();
    std::optional<Clock::time_point> lost_since;
    std::chrono::nanoseconds pause = kFirstPause;
    for (unsigned turn = 0;; ++turn) {
      const bool worked = worker_.progress();
      if (done()) {
        return {};
      }
      if (turn % kLook != 0 && turn < policy_.spins) {
        continue;
      }
      const auto now = Clock::now();
      if (turn == 0) {
        start = now;
      }
      if (world_.aborted()) {
        return std::errc::operation_canceled;
      }
      if (peer != nullptr && peer->lost.load(std::memory_order_acquire) != nullptr) {
        if (!lost_since) {
          lost_since = now;
        }
        if (now - *lost_since > kAfterLoss) {
          return std::errc::connection_reset;
        }
      }
      if (!for_ever && now - start >= limit) {
        return std::errc::timed_out;
      }
      if (now - start >= next_warning) {
        next_warning = now - start + 2 * warning_;
        warn(peer, now - start);
      }
      if (worked) {
        continue;
      }
      if (turn < policy_.spins) {
        // The awaited PE may be on this machine after all, in another container, and need this very processor.
        if (turn != 0 && YieldWatch::of_this_thread().pays(now)) {
          policy_.yield();
        }
        continue;
      }
      if (interrupted()) {
        return std::errc::owner_dead;
      }
      if (policy_.may_yield(turn)) {
        policy_.yield();
      } else {
        pause = lost_since ? kFirstPause : pause;
        worker_.sleep_until(done, for_ever ? pause : std::min(pause, limit - (now - start)));
        pause = std::min<std::chrono::nanoseconds>(2 * pause, kLongestSleep);
      }
    }
  }

  /// Waits for operations that end by themselves because their endpoint was closed by force. With a limit, because UCX
  /// 1.13 forgets an atomic operation that waited for its connection.
  template <std::predicate Done>
  void settle(Done done) {
    const auto end = Clock::now() + std::chrono::milliseconds{200};
    while (!done() && Clock::now() < end) {
      if (!worker_.progress()) {
        yield_processor();
      }
    }
  }

  /// The Error after wait() returned `why`: names the operation and the awaited PE.
  [[nodiscard]] Error error(std::errc why, const UcxPeers& peers, const UcxPeer& peer, const OpText& op,
                            std::optional<std::chrono::nanoseconds> own_limit = {}) const {
    if (why == std::errc::connection_reset) {
      return peers.lost_error(peer, op);
    }
    const std::string waited = fmt::format("shmem: {} waited to {}", peers.my_name(), peers.text_of(peer, op));
    if (why == std::errc::operation_canceled) {
      return fail(why, fmt::format("{}: the job was ended: {}", waited, world_.aborted().value_or("no reason given")));
    }
    if (why == std::errc::owner_dead) {
      return fail(why, waited + ", but a PE has lost a member of the team, or has called shmemx_team_shrink");
    }
    const auto limit = own_limit ? std::chrono::duration_cast<std::chrono::milliseconds>(*own_limit) : limit_;
    return fail(why, fmt::format("{} and timed out after {}; is it in libshmem, its node reachable, and no firewall "
                                 "between?",
                                 waited, seconds_text(limit)));
  }

 private:
  static constexpr unsigned kLook = 64;  // spins between two looks at the clock, some 20 us
  static constexpr std::chrono::milliseconds kAfterLoss{50};
  static constexpr std::chrono::nanoseconds kFirstPause = std::chrono::milliseconds{1};

  static void warn(const UcxPeer* peer, std::chrono::nanoseconds waited) {
    if (peer == nullptr) {
      return;
    }
    const std::string text =
        fmt::format("shmem: {}: an operation between nodes has taken {} s; it waits for {}", peer->all->my_name(),
                    std::chrono::floor<std::chrono::seconds>(waited).count(), peer->all->name(peer->pe));
    log(LogLevel::kWarn, "%s", text.c_str());
  }

  const Bootstrap& world_;
  UcxWorker& worker_;
  const std::chrono::milliseconds limit_;
  const std::chrono::milliseconds warning_;
  const WaitPolicy policy_;
};

}  // namespace shmem
