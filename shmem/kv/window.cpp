// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/window.hpp"

#include <algorithm>

namespace shmem::kv {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

Result<WindowDealer> WindowDealer::create(std::unique_ptr<Trace> trace, int pes, const Geometry& geometry) {
  if (pes < 1 || geometry.blocks < 2 || geometry.page < 1 || geometry.blocks / 2 * geometry.page < 2) {
    return fail(std::errc::invalid_argument, "cannot deal requests to " + std::to_string(pes) + " PEs with caches of " +
                                                 std::to_string(geometry.blocks) + " blocks of " +
                                                 std::to_string(geometry.page) +
                                                 " tokens: half a cache must hold a token");
  }
  WindowDealer dealer{std::move(trace), pes, geometry};
  if (auto ok = dealer.survey(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return dealer;
}

Result<void> WindowDealer::survey() {
  std::int64_t longest = 0;
  for (;;) {
    const auto request = trace_->next();
    if (!request) {
      return tl::make_unexpected(request.error());
    }
    if (!*request) {
      break;
    }
    ++requests_;
    longest = std::max(longest, (*request)->tokens());
  }
  // The longest sequence that half a cache holds leaves one place of its last page free.
  const std::int64_t most = geometry_.blocks / 2 * geometry_.page - 1;
  scale_ = std::max<std::int64_t>(divide_up(longest, most), 1);
  return trace_->rewind();
}

Result<std::int64_t> WindowDealer::next_tokens() {
  auto request = trace_->next();
  if (request && !*request) {
    if (auto ok = trace_->rewind(); !ok) {
      return tl::make_unexpected(ok.error());
    }
    request = trace_->next();
  }
  if (!request) {
    return tl::make_unexpected(request.error());
  }
  // A trace that had requests when it was surveyed and has none now was changed under our hands.
  if (!*request) {
    return fail(std::errc::io_error, "the trace " + trace_->name() + " has lost its requests");
  }
  return divide_up((*request)->tokens(), scale_);
}

Result<Lengths> WindowDealer::next() {
  const std::int64_t half = geometry_.blocks / 2;
  Lengths lengths(static_cast<std::size_t>(pes_));
  std::vector<std::int64_t> used(lengths.size(), 0);
  for (std::size_t pe = 0;; pe = (pe + 1) % lengths.size()) {
    if (!waiting_) {
      auto tokens = next_tokens();
      if (!tokens) {
        return tl::make_unexpected(tokens.error());
      }
      waiting_ = *tokens;
    }
    const std::int64_t blocks = blocks_of(*waiting_, geometry_.page);
    if (blocks > half - used[pe]) {
      if (used[pe] == 0) {
        return fail(std::errc::io_error, "the trace " + trace_->name() + " has grown a larger request");
      }
      return lengths;
    }
    used[pe] += blocks;
    lengths[pe].push_back(*waiting_);
    waiting_.reset();
  }
}

}  // namespace shmem::kv
