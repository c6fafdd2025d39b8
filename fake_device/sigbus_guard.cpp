// SPDX-License-Identifier: Apache-2.0
#include "fake_device/sigbus_guard.hpp"

#include <signal.h>
#include <sys/mman.h>

namespace fake_device {
namespace detail {

constinit thread_local GuardState guard_state;

}  // namespace detail

namespace {

// Puts memory of our own where the client's was, so that the store succeeds when it is tried again. The whole mapping,
// because a part of a huge page cannot be replaced.
bool replace(std::byte* mapping, std::size_t size) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return ::mmap(mapping, size, PROT_READ | PROT_WRITE, kFlags, -1, 0) != MAP_FAILED;
}

void on_sigbus(int number, siginfo_t* info, void* /*context*/) {
  detail::GuardState& state = detail::guard_state;
  auto* const address = static_cast<std::byte*>(info->si_addr);
  const bool ours = address >= state.mapping && address < state.mapping + state.size;
  if (ours && replace(state.mapping, state.size)) {
    state.faulted = true;
    return;
  }
  ::signal(number, SIG_DFL);  // the instruction runs again, and ends the process
}

}  // namespace

void install_sigbus_guard() {
  struct sigaction action {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace fake_device
