// SPDX-License-Identifier: Apache-2.0
// Deals the requests of a trace to PEs, as much at a time as their caches hold.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "shmem/kv/planner.hpp"
#include "shmem/kv/sequences.hpp"
#include "shmem/kv/trace.hpp"

namespace shmem::kv {

struct DealtSequence {
  std::int64_t tokens;
  std::vector<std::uint64_t> hashes{};  // of its first pages: equal numbers are equal contents
};

/// What each PE is dealt.
using TraceWindow = std::vector<std::vector<DealtSequence>>;

Lengths lengths_of(const TraceWindow& window);

/// Successive windows of a trace. A window deals requests to PEs in turn until the next PE has no room for the next
/// request, which then begins the next window; behind the last request the trace begins again. A PE is filled to half
/// its cache at most, so that any plan has room at the receiver.
///
/// All requests are scaled down by one factor, so that their sizes stay to each other what they are, until half a cache
/// holds five of the longest: a cache of ten sequences, as the reference's example has it. Where one sequence fills a
/// PE, there is nothing to even out.
///
/// A page has a hash if the trace names the blocks of the prompt that it lies in; a page that is not wholly prompt has
/// none. Used by one thread at a time.
class WindowDealer {
 public:
  /// Reads the trace once, so malformed lines are found here. Errors: those of the trace; a trace without requests; a
  /// cache whose half cannot hold a token; no PEs.
  static Result<WindowDealer> create(std::unique_ptr<Trace> trace, int pes, const Geometry& geometry);

  Result<TraceWindow> next();

  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] std::int64_t requests() const { return requests_; }
  /// Requests that windows have held so far; as many as requests() when the trace has been dealt once.
  [[nodiscard]] std::int64_t dealt() const { return dealt_; }
  /// Tokens of the trace that one token here stands for.
  [[nodiscard]] std::int64_t scale() const { return scale_; }

 private:
  WindowDealer(std::unique_ptr<Trace> trace, int pes, const Geometry& geometry)
      : trace_(std::move(trace)), pes_(pes), geometry_(geometry) {}

  Result<void> survey();
  [[nodiscard]] DealtSequence scaled(const Request& request) const;
  /// The next request, scaled; from the beginning again after the end.
  Result<DealtSequence> next_sequence();

  std::unique_ptr<Trace> trace_;
  int pes_;
  Geometry geometry_;
  std::int64_t scale_ = 1;
  std::int64_t requests_ = 0;
  std::int64_t dealt_ = 0;
  std::optional<DealtSequence> waiting_;  // the one that did not fit into the last window
};

/// A window in caches: the sequences of each PE one behind the other from block 0, as plan_pairs() has them.
class PageTables {
 public:
  PageTables(TraceWindow window, std::int64_t page);
  // What sequences() gives are views of the tables.
  PageTables(const PageTables&) = delete;
  PageTables& operator=(const PageTables&) = delete;

  [[nodiscard]] std::span<const Sequence> sequences() const { return sequences_; }

 private:
  TraceWindow window_;
  std::vector<std::int64_t> blocks_;  // all numbers from 0 on, as many as the fullest PE has blocks
  std::vector<Sequence> sequences_;
};

}  // namespace shmem::kv
