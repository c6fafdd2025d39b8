// SPDX-License-Identifier: Apache-2.0
// Waiting for other PEs while doing what they wait for.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <system_error>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/seconds_text.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/net/ucx_peers.hpp"

namespace shmem {

/// How one PE's end of the network waits. As many threads at once as the worker takes.
class UcxPatience {
 public:
  UcxPatience(const Bootstrap& world, UcxWorker& worker, const NetworkSettings& settings)
      : world_(world),
        worker_(worker),
        limit_(settings.limit),
        policy_(settings.patience),
        // Another thread may take from the worker what this one sleeps for: it looks again soon.
        longest_nap_(settings.threads ? std::chrono::milliseconds{1} : std::chrono::milliseconds{10}) {}

  /// Until done(). timed_out after the limit; operation_canceled once the job has ended; connection_reset if `peer` is
  /// lost and done() does not hold a moment later.
  template <std::predicate Done>
  std::errc wait(Done done, const UcxPeer* peer, std::optional<std::chrono::nanoseconds> own_limit = {}) {
    if (done()) return {};  // no look at the network: that is a system call
    const std::chrono::nanoseconds limit = own_limit.value_or(limit_);
    const bool for_ever = !own_limit && limit_.count() == 0;
    Clock::time_point start{};  // looked at once it takes longer than the spins
    std::optional<Clock::time_point> lost_since;
    for (unsigned turn = 0;; ++turn) {
      const bool worked = worker_.progress();
      if (done()) return {};
      if (turn % kLook != 0 && turn < policy_.spins) continue;
      const auto now = Clock::now();
      if (turn == 0) start = now;
      if (world_.aborted()) return std::errc::operation_canceled;
      if (peer != nullptr && peer->lost.load(std::memory_order_acquire) != nullptr) {
        if (!lost_since) lost_since = now;
        if (now - *lost_since > kAfterLoss) return std::errc::connection_reset;
      }
      if (!for_ever && now - start >= limit) return std::errc::timed_out;
      if (turn < policy_.spins || worked) continue;
      if (policy_.may_yield(turn)) {
        policy_.yield();
      } else {
        worker_.nap(for_ever ? longest_nap_ : std::min(longest_nap_, limit - (now - start)));
      }
    }
  }

  /// For what ends by itself, since its endpoint was closed by force. A bound all the same: UCX 1.13 forgets an atomic
  /// operation that waited for its connection.
  template <std::predicate Done>
  void settle(Done done) {
    const auto end = Clock::now() + std::chrono::milliseconds{200};
    while (!done() && Clock::now() < end) {
      if (!worker_.progress()) yield_processor();
    }
  }

  /// After wait() has given `why`: what this PE was doing, and for whom it waited.
  [[nodiscard]] tl::unexpected<Error> error(std::errc why, const UcxPeers& peers, const UcxPeer& peer,
                                            const Doing& doing,
                                            std::optional<std::chrono::nanoseconds> own_limit = {}) const {
    if (why == std::errc::connection_reset) return peers.lost_error(peer, doing);
    const std::string waited = peers.my_name() + " waited to " + peers.text_of(peer, doing);
    if (why == std::errc::operation_canceled) {
      return fail(why, "shmem: " + waited + ": the job was ended: " + world_.aborted().value_or("no reason given"));
    }
    const auto limit = own_limit ? std::chrono::duration_cast<std::chrono::milliseconds>(*own_limit) : limit_;
    return fail(why, "shmem: " + waited + " for " + seconds_text(limit) +
                         " in vain; is it in libshmem, its node reachable, and no firewall between?");
  }

 private:
  static constexpr unsigned kLook = 64;  // spins between two looks at the clock
  static constexpr std::chrono::milliseconds kAfterLoss{50};

  const Bootstrap& world_;
  UcxWorker& worker_;
  const std::chrono::milliseconds limit_;
  const WaitPolicy policy_;
  const std::chrono::nanoseconds longest_nap_;
};

}  // namespace shmem
