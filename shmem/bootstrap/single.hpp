// SPDX-License-Identifier: Apache-2.0
// The bootstrap of a job of one PE: nobody to talk to.
#pragma once

#include <atomic>
#include <string>

#include "shmem/bootstrap/bootstrap.hpp"

namespace shmem {

/// Thread safety: see Bootstrap.
class SingleBootstrap final : public Bootstrap {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override {
    return std::vector<std::byte>(mine.begin(), mine.end());
  }
  Result<void> barrier() override { return {}; }
  int abort(int status, const std::string& reason) override {
    if (aborted_.load(std::memory_order_relaxed)) return status_;  // only this thread writes it
    reason_ = reason;
    status_ = status;
    aborted_.store(true, std::memory_order_release);  // pairs with the load in aborted()
    return status;
  }
  [[nodiscard]] std::optional<std::string> aborted() const override {
    if (!aborted_.load(std::memory_order_acquire)) return std::nullopt;
    return reason_;
  }
  void leave() override {}

 private:
  std::string reason_;
  int status_ = 0;
  std::atomic<bool> aborted_{false};
};

}  // namespace shmem
