// SPDX-License-Identifier: Apache-2.0
// Barriers of the deprecated kind, in memory of the program (OpenSHMEM 1.6, section 9.9.2): dissemination over pSync.
#pragma once

#include "shmem/layout/parking.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// log2 of the largest set for which SHMEM_BARRIER_SYNC_SIZE words suffice.
constexpr int kActiveSetRounds = 16;

/// `words` is this PE's pSync, zero except for additions of PEs that are ahead. In round r this PE adds 1 to word r of
/// the member 2^r to its right and subtracts 1 from its own once it is there: words are counters, not flags, because
/// the neighbour may already be in the next barrier. All are zero again when all have returned.
template <std::invocable Check>
std::errc active_set_sync(const Job& job, const TeamMap& set, long* words, Check check) {
  const int me = set.member(job.me).value_or(0);
  for (int round = 0, distance = 1; distance < set.size; ++round, distance <<= 1) {
    const int peer = set.pe((me + distance) % set.size);
    // Release: makes this PE's stores, and those it has learnt of, visible to the peer. seq_cst for wake_parked.
    std::atomic_ref<long>(*reinterpret_cast<long*>(job.translate(words + round, peer)))
        .fetch_add(1, std::memory_order_seq_cst);
    wake_parked(job, peer);
    // Acquire: pairs with the fetch_add of the member to the left.
    std::atomic_ref<long> mine(words[round]);
    const std::errc error = wait_parked(
        job, [&] { return mine.load(std::memory_order_acquire) > 0; }, check);
    if (error != std::errc{}) {
      return error;
    }
    mine.fetch_sub(1, std::memory_order_relaxed);  // no other PE waits for it
  }
  return {};
}

}  // namespace shmem
