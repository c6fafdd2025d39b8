// SPDX-License-Identifier: Apache-2.0
#include "shmem/checking/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/size_text.hpp"

namespace shmem {
namespace {

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

std::string hexadecimal(const char* before, std::uintptr_t value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%s0x%llx", before, static_cast<unsigned long long>(value));
  return text.data();
}

bool apart(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  return a_bytes == 0 || b_bytes == 0 || number(a) + a_bytes <= number(b) || number(b) + b_bytes <= number(a);
}

}  // namespace

ThreadRule thread_rule(int level) {
  constexpr std::array kNames{"SHMEM_THREAD_SINGLE", "SHMEM_THREAD_FUNNELED", "SHMEM_THREAD_SERIALIZED",
                              "SHMEM_THREAD_MULTIPLE"};
  return {kNames.at(static_cast<std::size_t>(level)), level < 2, level < 3};
}

std::string Checker::name_of(const void* address) const {
  if (job_.is_in_heap(address)) {
    return hexadecimal("heap+", number(address) - number(job_.memory.heap(job_.me)));
  }
  if (const auto found = job_.registered->find(address)) {
    return hexadecimal(fmt::format("registered {}+", found->slot).c_str(), found->offset);
  }
  for (int pe = 0; pe < job_.size; ++pe) {
    // This PE's own globals are elsewhere.
    const std::byte* theirs = pe != job_.me ? job_.globals.locate(address, pe).address : nullptr;
    if (theirs != nullptr) {
      return hexadecimal("globals+", number(theirs) - number(job_.memory.globals(pe)));
    }
  }
  return hexadecimal("", number(address));
}

std::string Checker::bytes_at(const void* mine, std::size_t bytes) const {
  return fmt::format("{} at {}", base::count(bytes, "byte"), name_of(mine));
}

Problem Checker::memory(const void* mine, std::size_t bytes) const {
  if (!job_.is_in_heap(mine)) {
    return std::nullopt;
  }
  const std::size_t offset = number(mine) - number(job_.memory.heap(job_.me));
  const auto block = heap_.block_around(offset);
  if (!block || block->free()) {
    return bytes_at(mine, bytes) +
           " are not allocated: they were freed, or shmem_malloc and its like have never given them";
  }
  const std::size_t room = block->requested - std::min(block->requested, offset - block->offset);
  if (bytes > room) {
    return fmt::format("{} reach behind the end of the block of {} bytes at {}, which has {} from there on",
                       bytes_at(mine, bytes), block->requested, hexadecimal("heap+", block->offset), room);
  }
  return std::nullopt;
}

Problem Checker::local_memory(const void* local, const void* mine, std::size_t bytes, int pe) const {
  if (local == nullptr) {
    return fmt::format("the buffer of this PE is NULL, for {} bytes", bytes);
  }
  if (auto problem = memory(local, bytes)) {
    return problem;
  }
  if (pe == job_.world_me() && local != mine && !apart(local, bytes, mine, bytes)) {
    return "source and dest overlap: " + bytes_at(local, bytes) + " and at " + name_of(mine) + " of this same PE";
  }
  return std::nullopt;
}

Problem Checker::overlap(const CheckedBuffer& dest, const CheckedBuffer& source, bool may_be_in_place) const {
  const bool in_place = dest.address == source.address && may_be_in_place;
  if (in_place || apart(dest.address, dest.bytes, source.address, source.bytes)) {
    return std::nullopt;
  }
  return "dest (" + bytes_at(dest.address, dest.bytes) + ") and source (" + bytes_at(source.address, source.bytes) +
         ") overlap; they must be apart" + (may_be_in_place ? ", or the same" : "");
}

Problem Checker::sync_words(const long* words, int count, long initial) const {
  for (int i = 0; i < count; ++i) {
    // Relaxed: no PE has begun the call, so none changes them.
    const long value = std::atomic_ref(const_cast<long&>(words[i])).load(std::memory_order_relaxed);
    if (value != initial) {
      return fmt::format(
          "pSync[{}] (pSync is {}) is {}, not SHMEM_SYNC_VALUE: set all words to it on all PEs before the first call, "
          "and "
          "let no call use it while another does",
          i, name_of(words), value);
    }
  }
  return std::nullopt;
}

Problem Checker::thread(const ThreadRule& rule) const {
  const std::thread::id self = std::this_thread::get_id();
  if (rule.first_only && self != first_thread_) {
    return std::string("the thread that calls is not the one that started the library, and the level is ") +
           rule.level + "; ask shmem_init_thread for SHMEM_THREAD_SERIALIZED or SHMEM_THREAD_MULTIPLE";
  }
  // Relaxed: a program that serialises its threads has ordered them itself.
  const std::thread::id waits = in_rendezvous_.load(std::memory_order_relaxed);
  if (rule.one_at_a_time && waits != std::thread::id{} && waits != self) {
    return std::string("another thread of this PE is in a collective call, and the level is ") + rule.level +
           "; ask shmem_init_thread for SHMEM_THREAD_MULTIPLE, or let one thread call at a time";
  }
  return std::nullopt;
}

Problem Checker::compare(const CallSet& set, const std::string& call, const ThreadRule& rule) {
  in_rendezvous_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  auto problem = rendezvous_.compare(set, call, !rule.one_at_a_time);
  in_rendezvous_.store({}, std::memory_order_relaxed);
  return problem;
}

void Checker::hold_lock(const void* lock) {
  const std::lock_guard guard(mutex_);
  locks_.insert(lock);
}

void Checker::drop_lock(const void* lock) {
  const std::lock_guard guard(mutex_);
  locks_.erase(lock);
}

Problem Checker::held_locks() const {
  const std::lock_guard guard(mutex_);
  if (locks_.empty()) {
    return std::nullopt;
  }
  return "this PE still holds the lock at " + name_of(*locks_.begin()) +
         (locks_.size() > 1 ? fmt::format(" and {} more", locks_.size() - 1) : "") + "; call shmem_clear_lock before";
}

Problem Checker::leaks() const {
  constexpr int kMostNamed = 4;
  const Heap::Stats now = heap_.stats();
  if (now.live_blocks == 0) {
    return std::nullopt;
  }
  std::string text = fmt::format("{} of the symmetric heap {} not freed:", base::count(now.live_blocks, "block"),
                                 now.live_blocks == 1 ? "was" : "were");
  int named = 0;
  for (std::size_t offset = 0; const auto block = heap_.block_around(offset); offset = block->end()) {
    if (block->free()) {
      continue;
    }
    if (++named > kMostNamed) {
      return text + " and others";
    }
    text += fmt::format("{} {} at {}", named > 1 ? "," : "", base::count(block->requested, "byte"),
                        hexadecimal("heap+", block->offset));
  }
  return text;
}

}  // namespace shmem
