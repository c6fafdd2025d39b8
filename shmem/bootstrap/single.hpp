// SPDX-License-Identifier: Apache-2.0
// The bootstrap of a one-PE job.
#pragma once

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
  int abort(int status, const std::string& reason) override {
    if (!reason_.get()) {
      status_ = status;
      reason_.set(reason);
    }
    return status_;
  }
  [[nodiscard]] std::optional<std::string> aborted() const override { return reason_.get(); }
  Result<void> survive() override { return {}; }
  void leave() override {}

 private:
  EndReason reason_;
  int status_ = 0;
};

}  // namespace shmem
