// SPDX-License-Identifier: Apache-2.0
// What pair_steps.hpp tells a partner, to one on another node: the same words, by the network. What a PE hears stands
// in its own memory, wherever the partner is.
#pragma once

#include "shmem/kv/far.hpp"
#include "shmem/kv/pair_steps.hpp"

namespace shmem::kv {

/// Used by one thread, for one call. What is told is there when the call returns, but for a digest.
class FarPartner {
 public:
  /// `pairing.theirs` are this PE's own words, as Far has it. Both outlive this.
  FarPartner(Far& far, const Pairing& pairing) : far_(far), pairing_(pairing) {}

  Result<void> say_digest(std::uint64_t digest) { return store(pairing_.theirs.digests[pairing_.me], digest); }

  Result<void> say_ready(std::errc status) {
    if (auto ok = far_.fence(); !ok) {
      return ok;
    }
    const auto said = store(pairing_.theirs.ready[pairing_.me], word_value(pairing_.count, status));
    return said ? far_.quiet() : said;
  }

  /// REQUIRES: the blocks are there.
  Result<void> say_done() { return say_of_all_cores(std::errc{}); }

  /// As say_not_sent of pair_steps.hpp.
  Result<void> say_not_sent(std::errc status) {
    const auto last = far_.load(done_word(pairing_.theirs, pairing_.me, 0, pairing_.cores), pairing_.partner);
    if (!last) {
      return tl::make_unexpected(last.error());
    }
    if (status_of(*last) == std::errc{}) {
      auto ok = store(pairing_.theirs.sent[pairing_.me], call_of(*last));
      if (ok) {
        ok = far_.quiet();
      }
      if (!ok) {
        return ok;
      }
    }
    return say_of_all_cores(status);
  }

 private:
  /// In any order: this PE says nothing else before all of them are there.
  Result<void> say_of_all_cores(std::errc status) {
    for (int core = 0; core < pairing_.cores; ++core) {
      SyncWord& word = done_word(pairing_.theirs, pairing_.me, core, pairing_.cores);
      if (auto ok = store(word, word_value(pairing_.count, status)); !ok) {
        return ok;
      }
    }
    return far_.quiet();
  }
  Result<void> store(const SyncWord& word, std::uint64_t value) {
    return far_.start_store(word, pairing_.partner, value);
  }

  Far& far_;
  const Pairing& pairing_;
};

}  // namespace shmem::kv
