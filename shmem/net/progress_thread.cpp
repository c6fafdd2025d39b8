// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <stop_token>
#include <system_error>
#include <utility>

#include "shmem/net/network.hpp"

namespace shmem {

Result<std::jthread> start_progress_thread(Network& network, std::function<void()> worked) {
  const auto run = [&network, worked = std::move(worked)](const std::stop_token& stop) {
    const std::stop_callback wake(stop, [&network] { network.wake(); });
    while (!stop.stop_requested()) {
      if (!network.advance()) {
        network.sleep(kLongestSleep);
      } else if (worked) {
        worked();
      }
    }
  };
  try {
    return std::jthread(run);
  } catch (const std::system_error& error) {
    return fail(static_cast<std::errc>(error.code().value()),
                fmt::format("shmem: no thread for the network's progress: {}", error.what()));
  }
}

}  // namespace shmem
