// SPDX-License-Identifier: Apache-2.0
// Requests for when there is no trace at hand: the same ones every time.
#pragma once

#include "shmem/kv/trace.hpp"

namespace shmem::kv {

/// Many short requests and a few long ones, as conversations have.
class BuiltinTrace : public Trace {
 public:
  static constexpr int kRequests = 4000;

  Result<std::optional<Request>> next() override;
  Result<void> rewind() override;
  [[nodiscard]] std::string name() const override { return "built-in"; }

 private:
  std::uint64_t random();

  std::uint64_t state_ = 0;
  int given_ = 0;
  std::int64_t now_ms_ = 0;
};

}  // namespace shmem::kv
