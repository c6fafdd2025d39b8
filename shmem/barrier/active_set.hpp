// SPDX-License-Identifier: Apache-2.0
// Barriers of the deprecated kind, in memory of the program (OpenSHMEM 1.6, section 9.10): dissemination over pSync.
#pragma once

#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/layout/parking.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// log2 of the largest set for which SHMEM_BARRIER_SYNC_SIZE words suffice.
constexpr int kActiveSetRounds = 15;
/// The word after those of the rounds: one more than the round that its PE is in, 0 outside of the barrier. Only the
/// messages of other PEs depend on it.
constexpr int kActiveSetProgress = kActiveSetRounds;

/// `words` is this PE's pSync, zero except for additions of PEs that are ahead. In round r this PE adds 1 to word r of
/// the member 2^r to its right and subtracts 1 from its own once it is there: words are counters, not flags, because
/// the neighbour may already be in the next barrier. All are zero again when all have returned.
template <std::invocable Check>
std::errc active_set_sync(const Job& job, const TeamMap& set, long* words, Check check) {
  const int me = set.member(job.me).value_or(0);
  std::atomic_ref<long> progress(words[kActiveSetProgress]);
  for (int round = 0, distance = 1; distance < set.size; ++round, distance <<= 1) {
    const int peer = set.pe((me + distance) % set.size);
    // Release: makes this PE's stores, and those it has learnt of, visible to the peer. seq_cst for wake_parked.
    std::atomic_ref<long>(*reinterpret_cast<long*>(job.translate(words + round, peer)))
        .fetch_add(1, std::memory_order_seq_cst);
    wake_parked(job, peer);
    progress.store(round + 1, std::memory_order_relaxed);  // after the message, which ActiveSetMonitor relies on
    // Acquire: pairs with the fetch_add of the member to the left.
    std::atomic_ref<long> mine(words[round]);
    const std::errc error = wait_parked(
        job, [&] { return mine.load(std::memory_order_acquire) > 0; }, check);
    if (error != std::errc{}) {
      return error;
    }
    mine.fetch_sub(1, std::memory_order_relaxed);  // no other PE waits for it
  }
  progress.store(0, std::memory_order_relaxed);
  return {};
}

/// The barrier that is awaited: the routine, and its set in numbers of the world.
struct ActiveSetName {
  const char* call;
  int start;
  int stride;
};

/// A wait in active_set_sync(). More errors: owner_dead if the process of the PE that the others wait for is gone.
/// `job` and `set` outlive it.
class ActiveSetMonitor final : public WaitMonitor {
 public:
  ActiveSetMonitor(const Job& job, const TeamMap& set, long* words, const ActiveSetName& name)
      : WaitMonitor(job), set_(set), words_(words), name_(name) {}

  [[nodiscard]] std::string explain(std::errc error) const override;

 private:
  std::errc look() override;
  void warn(std::chrono::seconds waited) const override;
  [[nodiscard]] std::string subject() const override;
  [[nodiscard]] std::string awaited() const override;
  [[nodiscard]] std::string ending(std::errc error) const override;

  [[nodiscard]] long word(int member, long index) const;
  [[nodiscard]] bool has_arrived(int member) const { return word(member, kActiveSetProgress) != 0; }
  [[nodiscard]] int blocker() const;
  [[nodiscard]] std::string set_text() const;

  const TeamMap& set_;
  long* words_;
  ActiveSetName name_;
};

}  // namespace shmem
