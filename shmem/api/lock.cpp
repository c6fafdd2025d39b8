// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.13: locks, as a queue. Each PE waits for a word of its own, and PEs get the lock in the
// order of their requests. One thread of a PE is in the queue at a time; the PE's other threads wait for it.
#include "shmem/api/remote.hpp"

#include "shmem/api/peer.hpp"
#include "shmem/api/waiting.hpp"

using shmem::AtomicOperation;
using shmem::Runtime;
namespace api = shmem::api;

namespace {

/// A PE's part of a lock, in place of its long. All zero: free.
struct LockWord {
  std::uint32_t mine;  // of each PE: the flags below
  std::uint32_t last;  // of PE 0: the last PE that requested the lock, + 1
};
static_assert(sizeof(LockWord) == sizeof(long));

constexpr std::uint32_t kWaiting = 1U << 31;  // until the PE before releases this one
constexpr std::uint32_t kHeld = 1U << 30;
constexpr std::uint32_t kClaimed = 1U << 29;   // by one of this PE's threads, until it releases the lock
constexpr std::uint32_t kNext = kClaimed - 1;  // the PE that requested the lock after this one, + 1

// All changes are seq_cst, as wake_parked requires; so the holder's earlier stores are visible to the next holder.
class Lock {
 public:
  Lock(const char* call, long* lock) : call_(call), context_(api::running_on_host(call)), lock_(lock) {
    api::check_aligned(context_, call, lock);
    if (context_.checker() != nullptr) [[unlikely]] {
      check_words();
    }
  }

  void set() {
    api::progress();  // for PEs of other nodes that are ahead in the queue
    while (!claim()) {
      if (context_.thread_level() < SHMEM_THREAD_MULTIPLE) {
        api::end_job(context_, call_, "this PE holds the lock already, and would wait for itself");
      }
      wait([this] { return mine().load() == 0; }, [] { return std::string("another thread of this PE before it"); }, 0);
    }
    const std::uint32_t before = last(AtomicOperation::kSwap, number());
    if (before != 0) {
      change(before, AtomicOperation::kOr, number());
      wait_for_pe([this] { return (mine().load() & kWaiting) == 0; }, before);
    }
    hold();
  }

  bool test() {
    if (!claim()) {
      return false;
    }
    if (last(AtomicOperation::kCompareSwap, number(), 0) != 0) {
      let_go();
      return false;
    }
    hold();
    return true;
  }

  void clear() {
    if ((mine().load() & kHeld) == 0) {
      api::end_job(context_, call_, "this PE does not hold the lock");
    }
    api::quiet();
    api::progress();
    std::uint32_t asked_last = number();
    if ((mine().load() & kNext) == 0) {
      asked_last = last(AtomicOperation::kCompareSwap, 0, number());
      if (asked_last == number()) {
        let_go();
        return;
      }
    }
    // Another PE has requested the lock and is about to write its number here.
    wait_for_pe([this] { return (mine().load() & kNext) != 0; }, asked_last);
    const std::uint32_t next = mine().load() & kNext;
    let_go();
    change(next, AtomicOperation::kAnd, ~kWaiting);
  }

 private:
  /// For a PE on any node.
  [[nodiscard]] api::Peer peer(int pe) const { return api::Peer({context_, call_, pe}); }
  [[nodiscard]] LockWord* parts() const { return reinterpret_cast<LockWord*>(lock_); }
  [[nodiscard]] LockWord& at(const api::Peer& peer) const {
    return *reinterpret_cast<LockWord*>(peer.at(lock_, sizeof(long)));
  }
  static std::uint32_t apply(std::atomic_ref<std::uint32_t> word, AtomicOperation operation, std::uint32_t operand,
                             std::uint32_t compared) {
    switch (operation) {
      case AtomicOperation::kSwap:
        return word.exchange(operand);
      case AtomicOperation::kOr:
        return word.fetch_or(operand);
      case AtomicOperation::kAnd:
        return word.fetch_and(operand);
      case AtomicOperation::kCompareSwap:
        word.compare_exchange_strong(compared, operand);
        return compared;
      default:
        return word.load();
    }
  }
  /// PE 0's word for the last request, before the operation.
  std::uint32_t last(AtomicOperation operation, std::uint32_t operand = 0, std::uint32_t compared = 0) const {
    const api::Peer first = peer(0);
    if (first.is_remote()) {
      return api::remote_atomic(first, &parts()->last, operation, operand, compared);
    }
    return apply(std::atomic_ref(at(first).last), operation, operand, compared);
  }
  [[nodiscard]] std::uint32_t number() const { return static_cast<std::uint32_t>(context_.my_pe()) + 1; }
  [[nodiscard]] std::atomic_ref<std::uint32_t> mine() const { return std::atomic_ref(at(peer(context_.my_pe())).mine); }

  void hold() {
    mine().fetch_or(kHeld);
    mine().fetch_and(~kWaiting);
    if (context_.checker() != nullptr) [[unlikely]] {
      context_.checker()->hold_lock(lock_);
    }
  }
  /// Ends the job if the words contain values that no PE writes.
  void check_words() const {
    const auto pes = static_cast<std::uint32_t>(context_.n_pes());
    if (last(AtomicOperation::kFetch) > pes || (mine().load() & kNext) > pes) {
      api::end_job(context_, call_,
                   "the lock is " + context_.checker()->name_of(lock_) +
                       ", which is not a valid lock: set it to 0 on all PEs before its first use");
    }
  }

  /// Claims the lock for one of this PE's threads, before another PE can learn of the request.
  bool claim() {
    std::uint32_t free = 0;
    return mine().compare_exchange_strong(free, kClaimed | kWaiting);
  }
  void let_go() {
    if (context_.checker() != nullptr) [[unlikely]] {
      context_.checker()->drop_lock(lock_);
    }
    mine().store(0);
    peer(context_.my_pe()).wake();  // its next thread
  }

  /// Changes the word of PE `number`, and wakes it if it waits.
  void change(std::uint32_t number, AtomicOperation operation, std::uint32_t operand) const {
    const api::Peer other = peer(static_cast<int>(number) - 1);
    if (other.is_remote()) {
      api::remote_atomic(other, &parts()->mine, operation, operand);
      return;
    }
    apply(std::atomic_ref(at(other).mine), operation, operand, 0);
    other.wake();
  }
  /// The wait is for PE `number`, if that is not 0, and may be for all PEs that have the lock or have requested it. The
  /// words of a PE that has died stay; those of one on another node cannot be read.
  [[nodiscard]] bool needs(int pe, std::uint32_t number) const {
    const api::Peer other = peer(pe);
    return static_cast<std::uint32_t>(pe) + 1 == number || other.is_remote() ||
           std::atomic_ref(at(other).mine).load() != 0;
  }
  template <typename Done, typename Describe>
  void wait(Done done, Describe describe, std::uint32_t number) const {
    api::wait_here(context_, call_, done, describe, [this, number](int pe) { return needs(pe, number); });
  }
  template <typename Done>
  void wait_for_pe(Done done, std::uint32_t number) const {
    wait(
        done, [number] { return fmt::format("no answer from PE {}, which has requested the lock too", number - 1); },
        number);
  }

  const char* call_;
  const Runtime& context_;
  long* lock_;
};

}  // namespace

SHMEM_ROUTINE(void, set_lock, (long* lock)) try { Lock("shmem_set_lock", lock).set(); }
SHMEM_CATCH(void)

SHMEM_ROUTINE(void, clear_lock, (long* lock)) try { Lock("shmem_clear_lock", lock).clear(); }
SHMEM_CATCH(void)

SHMEM_ROUTINE(int, test_lock, (long* lock)) try {
  if (Lock("shmem_test_lock", lock).test()) {
    return 0;
  }
  api::progress();  // the holder may wait for this PE's answer
  return 1;
}
SHMEM_CATCH(int)
