// SPDX-License-Identifier: Apache-2.0
// Deals the requests of a trace to PEs, as much at a time as their caches hold.
#pragma once

#include <memory>

#include "shmem/kv/planner.hpp"
#include "shmem/kv/trace.hpp"

namespace shmem::kv {

/// Successive windows of a trace. A window deals requests to PEs in turn until the next PE has no room for the next
/// request, which then begins the next window; behind the last request the trace begins again. A PE is filled to half
/// its cache at most, so that any plan has room at the receiver.
///
/// Requests larger than that make all requests be scaled down by one factor, so that their sizes stay to each other
/// what they are. Used by one thread at a time.
class WindowDealer {
 public:
  /// Reads the trace once, so malformed lines are found here. Errors: those of the trace; a cache whose half
  /// cannot hold a token; no PEs.
  static Result<WindowDealer> create(std::unique_ptr<Trace> trace, int pes, const Geometry& geometry);

  Result<Lengths> next();

  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] std::int64_t requests() const { return requests_; }
  /// Tokens of the trace that one token here stands for.
  [[nodiscard]] std::int64_t scale() const { return scale_; }

 private:
  WindowDealer(std::unique_ptr<Trace> trace, int pes, const Geometry& geometry)
      : trace_(std::move(trace)), pes_(pes), geometry_(geometry) {}

  Result<void> survey();
  /// The next request's tokens, scaled; from the beginning again after the end.
  Result<std::int64_t> next_tokens();

  std::unique_ptr<Trace> trace_;
  int pes_;
  Geometry geometry_;
  std::int64_t scale_ = 1;
  std::int64_t requests_ = 0;
  std::optional<std::int64_t> waiting_;  // tokens of the request that did not fit into the last window
};

}  // namespace shmem::kv
