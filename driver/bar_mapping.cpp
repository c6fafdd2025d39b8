// SPDX-License-Identifier: Apache-2.0
#include "driver/bar_mapping.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <mutex>

namespace gba {

namespace {

/// What the signal handler and the fork handler may look at: fixed memory, no locks.
struct Place {
  std::atomic<bool> taken{false};
  std::atomic<std::byte*> begin{nullptr};  // set last, with release order: the rest is then there
  std::size_t size = 0;
  Backend* backend = nullptr;
};

// A signal handler has no arguments of ours, so this is the one place for them.
constexpr std::size_t kPlaces = 512;
constinit std::array<Place, kPlaces> places;
struct sigaction handler_before;

/// Held while a mapping ends, and while one is replaced by a thread that does not use it.
constinit std::mutex ends;

/// Ordinary memory in place of the device's. False: the process cannot go on.
bool replace(const Place& place, std::byte* begin) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return ::mmap(begin, place.size, PROT_READ | PROT_WRITE, kFlags, -1, 0) != MAP_FAILED;
}

bool replace_at(const void* address) {
  for (Place& place : places) {
    std::byte* const begin = place.begin.load(std::memory_order_acquire);
    if (begin == nullptr || address < begin || address >= begin + place.size) continue;
    if (!replace(place, begin)) return false;
    place.backend->mark_lost(Loss::kUnmapped);
    return true;
  }
  return false;
}

void hand_on(int number, siginfo_t* info, void* context) {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(number, info, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(number);
  } else {
    ::signal(number, SIG_DFL);  // the instruction runs again, and ends the process as if we were not here
  }
}

void on_sigbus(int number, siginfo_t* info, void* context) {
  if (!replace_at(info->si_addr)) hand_on(number, info, context);
}

void in_child() {
  for (Place& place : places) {
    std::byte* const begin = place.begin.load(std::memory_order_acquire);
    if (begin == nullptr) continue;
    replace(place, begin);
    place.backend->mark_forked();
  }
}

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &handler_before);
    ::pthread_atfork(nullptr, nullptr, in_child);
  });
}

int take_place(std::span<std::byte> bytes, Backend& backend) {
  for (std::size_t i = 0; i < kPlaces; ++i) {
    bool taken = false;
    if (places[i].taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) {
      places[i].size = bytes.size();
      places[i].backend = &backend;
      places[i].begin.store(bytes.data(), std::memory_order_release);
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace

Result<BarMapping> BarMapping::make(Backend& backend, std::uint32_t region) {
  install_handlers();
  auto mapping = backend.map(region);
  if (!mapping) return tl::make_unexpected(mapping.error());
  const int place = take_place(mapping->bytes(), backend);
  if (place == kNoPlace) {
    return fail(std::errc::too_many_files_open, "gba: cannot open " + backend.path() + ": more than " +
                                                    std::to_string(kPlaces) + " device regions are mapped");
  }
  return BarMapping(*std::move(mapping), place);
}

void BarMapping::detach(const Backend& backend) {
  const std::lock_guard lock(ends);
  for (Place& place : places) {
    std::byte* const begin = place.begin.load(std::memory_order_acquire);
    if (begin != nullptr && place.backend == &backend) replace(place, begin);
  }
}

BarMapping::~BarMapping() {
  if (place_ == kNoPlace) return;
  Place& place = places[static_cast<std::size_t>(place_)];
  const std::lock_guard lock(ends);
  place.begin.store(nullptr, std::memory_order_relaxed);
  place.taken.store(false, std::memory_order_release);
}

}  // namespace gba
