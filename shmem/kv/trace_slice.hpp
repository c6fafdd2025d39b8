// SPDX-License-Identifier: Apache-2.0
// Some time of a trace.
#pragma once

#include <memory>
#include <optional>

#include "shmem/kv/trace.hpp"

namespace shmem::kv {

/// The requests that arrive in from_ms <= time < to_ms, where the trace's first one arrives at 0. Nothing behind them
/// is read.
class TraceSlice : public Trace {
 public:
  /// Until the trace's end without `to_ms`. Error: from_ms is negative, or no time is left.
  static Result<std::unique_ptr<Trace>> create(std::unique_ptr<Trace> trace, std::int64_t from_ms,
                                               std::optional<std::int64_t> to_ms);

  Result<std::optional<Request>> next() override;
  Result<void> rewind() override;
  [[nodiscard]] std::string name() const override;

 private:
  TraceSlice(std::unique_ptr<Trace> trace, std::int64_t from_ms, std::optional<std::int64_t> to_ms)
      : trace_(std::move(trace)), from_ms_(from_ms), to_ms_(to_ms) {}

  std::unique_ptr<Trace> trace_;
  std::int64_t from_ms_;
  std::optional<std::int64_t> to_ms_;
  std::optional<std::int64_t> first_ms_;  // the time that counts as 0
};

}  // namespace shmem::kv
