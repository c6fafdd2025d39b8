// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/progress_thread.hpp"

#include <system_error>

#include "shmem/cores/wait.hpp"

namespace shmem {

Result<std::unique_ptr<ProgressThread>> ProgressThread::start(Network& network) {
  std::unique_ptr<ProgressThread> made(new ProgressThread(network));
  try {
    made->thread_ = std::jthread([&network](const std::stop_token& stop) { run(stop, network); });
  } catch (const std::system_error& error) {
    return fail(static_cast<std::errc>(error.code().value()),
                std::string("shmem: no thread for the network's progress: ") + error.what());
  }
  return made;
}

ProgressThread::~ProgressThread() {
  thread_.request_stop();
  network_.wake();
}

void ProgressThread::run(const std::stop_token& stop, Network& network) {
  while (!stop.stop_requested()) {
    if (!network.advance()) network.nap(kLongestSleep);
  }
}

}  // namespace shmem
