// SPDX-License-Identifier: Apache-2.0
// SHMEM_DEBUG: finds calls whose behaviour would be undefined. docs/checking.md lists the checks.
#pragma once

#include <mutex>
#include <set>
#include <thread>

#include "shmem/checking/call_rendezvous.hpp"
#include "shmem/heap/symmetric_heap.hpp"

namespace shmem {

/// A problem as the rest of a sentence that begins with the call's name; "" if another PE has reported it and ended the
/// job; nothing if there is no problem.
using Problem = std::optional<std::string>;

/// What a collective call reads or writes on each member.
struct CheckedBuffer {
  const void* address;
  std::size_t bytes;
};

/// The meaning of the program's thread level of that name.
struct ThreadRule {
  const char* level = "SHMEM_THREAD_MULTIPLE";
  bool first_only = false;     // only the thread that started the library calls it
  bool one_at_a_time = false;  // threads may call, but one at a time
};

/// For a level, SHMEM_THREAD_*.
ThreadRule thread_rule(int level);

/// Thread-safe. It exists only with SHMEM_DEBUG: callers check that first.
class Checker {
 public:
  Checker(const Job& job, const SymmetricHeap& heap) : job_(job), heap_(heap), rendezvous_(job) {}

  /// For bytes in the symmetric heap or in global variables: did shmem_malloc return them?
  [[nodiscard]] Problem memory(const void* mine, std::size_t bytes) const;
  /// For a copy between `mine` of PE `pe` and `local`: is `local` valid, and do the two not overlap?
  [[nodiscard]] Problem local_memory(const void* local, const void* mine, std::size_t bytes, int pe) const;
  /// For a collective call.
  [[nodiscard]] Problem overlap(const CheckedBuffer& dest, const CheckedBuffer& source, bool may_be_in_place) const;
  /// For a pSync, before any PE can have begun the call.
  [[nodiscard]] Problem sync_words(const long* words, int count, long initial) const;
  /// For the calling thread: may it call?
  [[nodiscard]] Problem thread(const ThreadRule& rule) const;

  /// Before a collective call: do all members make the same call? `call` includes its arguments.
  Problem compare(const CallSet& set, const std::string& call, const ThreadRule& rule);
  /// The same for a call that does not wait for others.
  void announce(const CallSet& set, const std::string& call) { rendezvous_.announce(set, call); }
  void forget(const CallSet& set) { rendezvous_.forget(set); }

  void hold_lock(const void* lock);
  void drop_lock(const void* lock);
  /// At the end: a lock that this PE still holds.
  [[nodiscard]] Problem held_locks() const;
  /// At the end: blocks that were not freed, which is not an error.
  [[nodiscard]] Problem leaks() const;

  /// The same text on all PEs for the same object: "heap+0x40", "globals+0x1000"; other addresses unchanged.
  [[nodiscard]] std::string name_of(const void* address) const;

 private:
  [[nodiscard]] std::string bytes_at(const void* mine, std::size_t bytes) const;

  const Job& job_;
  const SymmetricHeap& heap_;
  CallRendezvous rendezvous_;
  std::thread::id first_thread_ = std::this_thread::get_id();
  std::atomic<std::thread::id> in_rendezvous_{};  // a thread that waits in compare()
  mutable std::mutex mutex_;                      // of the locks
  std::set<const void*> locks_;
};

}  // namespace shmem
