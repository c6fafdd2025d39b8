// SPDX-License-Identifier: Apache-2.0
// What the process's handlers of SIGBUS and of fork() know: the memory of devices, and mutexes. That of SIGBUS is there
// while a device's memory is mapped; that of fork() is installed once and stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

namespace gba {

class Backend;

/// A mutex that a forked child finds free, whichever thread of its parent held it. What it guards may be half changed
/// then, so the child may use it only to find out that the device is lost, and to close it.
class ForkMutex {
 public:
  ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;
  ~ForkMutex();

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

  /// For the fork handler: makes all of them free.
  static void free_all();

 private:
  std::mutex mutex_;
  ForkMutex* previous_ = nullptr;  // in the list of all
  ForkMutex* next_;
};

/// Mapped memory, as long as the object lives. In a forked child ordinary memory takes its place, and the device is
/// lost for the child. With a device's memory the same happens when an access raises SIGBUS. Movable.
class MemoryEntry {
 public:
  enum class Kind : std::uint8_t { kDevice, kHost };  // kHost: the device writes to it
  static constexpr std::size_t kMost = 1024;

  MemoryEntry() = default;
  /// Empty if the table is full. `backend` and the mapping outlive the object.
  MemoryEntry(Backend& backend, std::span<std::byte> memory, Kind kind);
  MemoryEntry(const MemoryEntry&) = delete;
  MemoryEntry& operator=(const MemoryEntry&) = delete;
  MemoryEntry(MemoryEntry&& other) noexcept : place_(std::exchange(other.place_, kNone)) {}
  MemoryEntry& operator=(MemoryEntry&& other) noexcept {
    std::swap(place_, other.place_);
    return *this;
  }
  ~MemoryEntry();

  explicit operator bool() const { return place_ != kNone; }

  /// Puts ordinary memory in the place of `backend`'s device memory. Not for signal handlers.
  static void detach(const Backend& backend);

 private:
  static constexpr int kNone = -1;
  int place_ = kNone;
};

}  // namespace gba
