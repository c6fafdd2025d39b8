// SPDX-License-Identifier: Apache-2.0
// How PEs send blocks and words to PEs on other nodes.
#pragma once

#include "kv/operator/operator_team.hpp"
#include "kv/operator/pair_steps.hpp"

namespace shmem::kv {

/// Blocks on their way to other nodes. Many puts are under way at once, and adjacent pieces are one put. After an Error
/// nothing more is sent, and finish() returns it. Used by one thread.
class RemotePuts {
 public:
  /// `v`: where this PE's V begins, if K and V are apart. They may be different registered memories, which no put spans
  /// even if they are adjacent.
  RemotePuts(OperatorTeam& team, const std::byte* v) : team_(&team), v_(v) {}

  /// REQUIRES: `pe` is remote. `from` is not changed until finish().
  void add(int pe, std::byte* to, const std::byte* from, std::size_t size) {
    if (waiting_.size != 0 && waiting_.pe == pe && waiting_.to + waiting_.size == to &&
        waiting_.from + waiting_.size == from && to != v_) {
      waiting_.size += size;
      return;
    }
    send();
    waiting_ = {pe, to, from, size};
  }

  /// Returns when everything added so far has arrived; or the first Error.
  const Result<void>& finish() {
    send();
    drain();
    return outcome_;
  }

 private:
  /// Bounds what UCX keeps for puts under way. A quiet after so many costs nothing in comparison.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostPuts = 4096;

  struct Put {
    int pe = 0;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t size = 0;  // 0: none
  };

  void send() {
    if (waiting_.size == 0 || !outcome_) {
      return;
    }
    outcome_ = team_->start_put(waiting_.to, waiting_.pe, waiting_.from, waiting_.size);
    bytes_ += waiting_.size;
    ++puts_;
    waiting_.size = 0;
    if (bytes_ >= kMostBytes || puts_ >= kMostPuts) {
      drain();
    }
  }

  /// Also after an Error: puts under way must not read memory that the caller uses again.
  void drain() {
    if (puts_ == 0) {
      return;
    }
    bytes_ = puts_ = 0;
    const auto done = team_->quiet();
    if (outcome_ && !done) {
      outcome_ = done;
    }
  }

  OperatorTeam* team_;
  const std::byte* v_;
  Put waiting_{};
  std::size_t bytes_ = 0, puts_ = 0;  // since the last quiet
  Result<void> outcome_{};
};

/// Tells a partner on another node what pair_steps.hpp tells one on this node. This PE's own words, which it reads, are
/// in its own memory as always. Used by one thread, for one call. A word has arrived when its call returns, but for a
/// digest.
class RemotePartner {
 public:
  /// `pairing.theirs` are this PE's own words, which name the partner's. Both outlive this.
  RemotePartner(OperatorTeam& team, const Pairing& pairing) : team_(team), pairing_(pairing) {}

  Result<void> say_digest(std::uint64_t digest) { return store(pairing_.theirs.digests[pairing_.me], digest); }

  Result<void> say_ready(std::errc status) {
    if (auto ok = team_.fence(); !ok) {
      return ok;
    }
    const auto said = store(pairing_.theirs.ready[pairing_.me], word_value(pairing_.count, status));
    return said ? team_.quiet() : said;
  }

  /// REQUIRES: the blocks have arrived.
  Result<void> say_done() { return say_of_all_cores(std::errc{}); }

  /// As say_not_sent() in pair_steps.hpp.
  Result<void> say_not_sent(std::errc status) {
    const auto last = team_.load(done_word(pairing_.theirs, pairing_.me, 0, pairing_.cores), pairing_.partner);
    if (!last) {
      return last.error();
    }
    if (status_of(*last) == std::errc{}) {
      auto ok = store(pairing_.theirs.sent[pairing_.me], call_of(*last));
      if (ok) {
        ok = team_.quiet();
      }
      if (!ok) {
        return ok;
      }
    }
    return say_of_all_cores(status);
  }

 private:
  /// In any order, because quiet() waits for all of them.
  Result<void> say_of_all_cores(std::errc status) {
    for (int core = 0; core < pairing_.cores; ++core) {
      SyncWord& word = done_word(pairing_.theirs, pairing_.me, core, pairing_.cores);
      if (auto ok = store(word, word_value(pairing_.count, status)); !ok) {
        return ok;
      }
    }
    return team_.quiet();
  }
  Result<void> store(const SyncWord& word, std::uint64_t value) {
    return team_.start_store(word, pairing_.partner, value);
  }

  OperatorTeam& team_;
  const Pairing& pairing_;
};

}  // namespace shmem::kv
