// SPDX-License-Identifier: Apache-2.0
#include "driver/process_hooks.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "driver/backend.hpp"

namespace gba {

namespace {

/// What the signal handler and the fork handler may read: fixed memory, no locks.
struct MappedMemory {
  std::atomic<bool> taken{false};
  std::atomic<std::byte*> begin{nullptr};  // set last, with release order: the rest is then there
  std::size_t size = 0;
  Backend* backend = nullptr;
  MemoryEntry::Kind kind = MemoryEntry::Kind::kDevice;

  /// Its begin if it is device memory, else null.
  [[nodiscard]] std::byte* device_memory() const {
    std::byte* const first = begin.load(std::memory_order_acquire);
    return first != nullptr && kind == MemoryEntry::Kind::kDevice ? first : nullptr;
  }
};

// A signal handler has no arguments of ours, so this is the one place for them.
constinit std::array<MappedMemory, MemoryEntry::kMost> places;
struct sigaction handler_before;
constinit bool handler_is_there = false;    // with `changes`
constinit std::size_t device_memories = 0;  // with `changes`

/// Held while a mapping ends, while one is replaced by a thread that does not use it, while the list of mutexes
/// changes, and over a fork.
constinit std::mutex changes;
constinit ForkMutex* first_mutex = nullptr;

/// Ordinary memory in place of the device's. False: the process cannot go on.
bool replace(const MappedMemory& place, std::byte* begin) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return ::mmap(begin, place.size, PROT_READ | PROT_WRITE, kFlags, -1, 0) != MAP_FAILED;
}

bool replace_at(const void* address) {
  for (MappedMemory& place : places) {
    std::byte* const begin = place.device_memory();
    if (begin == nullptr || address < begin || address >= begin + place.size) {
      continue;
    }
    if (!replace(place, begin)) {
      return false;
    }
    place.backend->mark_lost(Loss::kUnmapped);
    return true;
  }
  return false;
}

/// `access`: an access to memory raised it, so the instruction is repeated after the handler.
void hand_on(int number, siginfo_t* info, void* context, bool access) {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(number, info, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(number);
  } else if (access || handler_before.sa_handler == SIG_DFL) {
    ::signal(number, SIG_DFL);
    // Ends the process as without this handler: the instruction runs again, or else the signal comes again.
    if (!access) {
      ::raise(number);
    }
  }
}

void on_sigbus(int number, siginfo_t* info, void* context) {
  // A process can send the signal, and the kernel reports bad memory that nothing has touched.
  const bool access = info->si_code > 0 && info->si_code != BUS_MCEERR_AO;
  if (!access || !replace_at(info->si_addr)) {
    hand_on(number, info, context, access);
  }
}

void before_fork() {
  changes.lock();
}

void in_parent() {
  changes.unlock();
}

void in_child() {
  ForkMutex::free_all();
  for (MappedMemory& place : places) {
    std::byte* const begin = place.begin.load(std::memory_order_acquire);
    if (begin == nullptr) {
      continue;
    }
    replace(place, begin);
    place.backend->mark_forked();
  }
  changes.unlock();
}

void handle_forks() {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(before_fork, in_parent, in_child); });
}

/// REQUIRES: `changes` is held.
void handle_bus_errors() {
  if (std::exchange(handler_is_there, true)) {
    return;
  }
  struct sigaction action {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &handler_before);
}

/// A handler that was installed later stays, and may hand on to this one. REQUIRES: `changes` is held.
void leave_bus_errors() {
  struct sigaction now {};
  ::sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_sigbus) {
    ::sigaction(SIGBUS, &handler_before, nullptr);
    handler_is_there = false;
  }
}

void forget_device_memory() {
  const std::lock_guard lock(changes);
  if (--device_memories == 0) {
    leave_bus_errors();
  }
}

}  // namespace

ForkMutex::ForkMutex() {
  handle_forks();
  const std::lock_guard lock(changes);
  next_ = std::exchange(first_mutex, this);
  if (next_ != nullptr) {
    next_->previous_ = this;
  }
}

ForkMutex::~ForkMutex() {
  const std::lock_guard lock(changes);
  (previous_ == nullptr ? first_mutex : previous_->next_) = next_;
  if (next_ != nullptr) {
    next_->previous_ = previous_;
  }
}

void ForkMutex::free_all() {
  for (ForkMutex* mutex = first_mutex; mutex != nullptr; mutex = mutex->next_) {
    new (&mutex->mutex_) std::mutex;  // one that is locked by a thread that is not here cannot be destroyed
  }
}

MemoryEntry::MemoryEntry(Backend& backend, std::span<std::byte> memory, Kind kind) {
  handle_forks();
  if (kind == Kind::kDevice) {
    const std::lock_guard lock(changes);
    ++device_memories;
    handle_bus_errors();
  }
  for (std::size_t i = 0; i < kMost; ++i) {
    bool taken = false;
    if (places[i].taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) {
      places[i].size = memory.size();
      places[i].backend = &backend;
      places[i].kind = kind;
      places[i].begin.store(memory.data(), std::memory_order_release);
      place_ = static_cast<int>(i);
      return;
    }
  }
  if (kind == Kind::kDevice) {
    forget_device_memory();
  }
}

void MemoryEntry::detach(const Backend& backend) {
  const std::lock_guard lock(changes);
  for (MappedMemory& place : places) {
    std::byte* const begin = place.device_memory();
    if (begin != nullptr && place.backend == &backend) {
      replace(place, begin);
    }
  }
}

MemoryEntry::~MemoryEntry() {
  if (place_ == kNone) {
    return;
  }
  MappedMemory& place = places[static_cast<std::size_t>(place_)];
  const bool is_device = place.kind == Kind::kDevice;
  {
    const std::lock_guard lock(changes);
    place.begin.store(nullptr, std::memory_order_relaxed);
    place.taken.store(false, std::memory_order_release);
  }
  if (is_device) {
    forget_device_memory();
  }
}

}  // namespace gba
