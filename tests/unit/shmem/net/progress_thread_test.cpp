// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "tests/unit/shmem/noting_network.hpp"

namespace shmem {
namespace {

/// Has no memory for its first steps.
class ShortOfMemory final : public NotingNetwork {
 public:
  bool advance() override {
    if (steps_.fetch_add(1, std::memory_order_relaxed) < 2) {
      throw std::bad_alloc();
    }
    went_on_.store(true, std::memory_order_relaxed);  // the words are all that the threads share
    went_on_.notify_one();
    return true;
  }
  void await_progress() { went_on_.wait(false, std::memory_order_relaxed); }

 private:
  std::atomic<int> steps_{0};
  std::atomic<bool> went_on_{false};
};

TEST(ProgressThread, GoesOnAfterStepsWithoutMemory) {
  ShortOfMemory network;
  const auto thread = start_progress_thread(network);
  ASSERT_TRUE(thread) << thread.error().text;
  network.await_progress();
}

}  // namespace
}  // namespace shmem
