// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <new>
#include <stop_token>
#include <system_error>
#include <thread>

#include "base/signals_blocked.hpp"
#include "shmem/net/network.hpp"

namespace shmem {
namespace {

/// After a step for which there was no memory.
constexpr std::chrono::milliseconds kMemoryPause{10};

}  // namespace

Result<std::jthread> start_progress_thread(Network& network) {
  const auto run = [&network](const std::stop_token& stop) {
    const std::stop_callback wake(stop, [&network] { network.wake(); });
    while (!stop.stop_requested()) {
      try {
        if (!network.advance()) {
          network.sleep(kLongestSleep);
        }
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(kMemoryPause);
      }
    }
  };
  try {
    // Not a HelperThread: the end of this one stops what it does, which needs a stop token.
    const base::SignalsBlocked blocked;
    std::jthread thread(run);
    network.is_served_by_a_thread();
    return thread;
  } catch (const std::system_error& error) {
    return fail(static_cast<std::errc>(error.code().value()),
                fmt::format("shmem: no thread for the network's progress: {}", error.what()));
  }
}

}  // namespace shmem
