// SPDX-License-Identifier: Apache-2.0
// SHMEM_DEBUG: what is wrong with a call where it would be undefined behaviour. docs/checking.md says what is looked
// at.
#pragma once

#include <mutex>
#include <set>
#include <thread>

#include "shmem/checking/call_meeting.hpp"
#include "shmem/memory/symmetric_heap.hpp"

namespace shmem {

/// A problem as the rest of a sentence that begins with the call's name; "" where another PE has told of it and ended
/// the job; nothing if there is none.
using Problem = std::optional<std::string>;

/// What a collective call reads or writes of each member.
struct CheckedBuffer {
  const void* address;
  std::size_t bytes;
};

/// What the thread level of the program, of that name, means.
struct ThreadRule {
  const char* level = "SHMEM_THREAD_MULTIPLE";
  bool first_only = false;     // the thread that has started the library is the only one that calls
  bool one_at_a_time = false;  // threads may call, but not at once
};

/// Of a level, SHMEM_THREAD_*.
ThreadRule thread_rule(int level);

/// Thread-safe. There is none without SHMEM_DEBUG: whoever asks looks first whether there is one.
class Checker {
 public:
  Checker(const Job& job, const SymmetricHeap& heap) : job_(job), heap_(heap), meeting_(job) {}

  /// Of bytes that are in the symmetric heap or are global variables: are they what shmem_malloc has given?
  [[nodiscard]] Problem memory(const void* mine, std::size_t bytes) const;
  /// Of a copy between `mine` of PE `pe` and `local`: is there a `local`, and do the two not overlap?
  [[nodiscard]] Problem local_memory(const void* local, const void* mine, std::size_t bytes, int pe) const;
  /// Of a collective call.
  [[nodiscard]] Problem overlap(const CheckedBuffer& dest, const CheckedBuffer& source, bool may_be_in_place) const;
  /// Of a pSync, before anybody can have begun the call.
  [[nodiscard]] Problem sync_words(const long* words, int count, long initial) const;
  /// Of the calling thread: may it call?
  [[nodiscard]] Problem thread(const ThreadRule& rule) const;

  /// Before a collective call: do all members make the same one? `call` has its arguments, too.
  Problem meet(const CallSet& set, const std::string& call, const ThreadRule& rule);
  /// The same of a call that does not wait for others.
  void announce(const CallSet& set, const std::string& call) { meeting_.announce(set, call); }
  void forget(const CallSet& set) { meeting_.forget(set); }

  void hold_lock(const void* lock);
  void drop_lock(const void* lock);
  /// At the end: a lock that this PE still holds.
  [[nodiscard]] Problem held_locks() const;
  /// At the end: blocks that were not given back, which is no mistake.
  [[nodiscard]] Problem leaks() const;

  /// The same on all PEs for the same object: "heap+0x40", "globals+0x1000"; other addresses as they are.
  [[nodiscard]] std::string name_of(const void* address) const;

 private:
  [[nodiscard]] std::string bytes_at(const void* mine, std::size_t bytes) const;

  const Job& job_;
  const SymmetricHeap& heap_;
  CallMeeting meeting_;
  std::thread::id first_thread_ = std::this_thread::get_id();
  std::atomic<std::thread::id> in_meeting_{};  // a thread that waits in meet()
  mutable std::mutex mutex_;                   // of the locks
  std::set<const void*> locks_;
};

}  // namespace shmem
