// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace kv_program {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Sequences of the longest length that half a cache holds.
constexpr std::int64_t kLongestInHalf = 5;

/// The hash of a page that ends in the block of the prompt with this id. The id identifies the whole prompt up to that
/// block's end, so that id and page number identify the page.
std::uint64_t hash_of_page(std::int64_t id, std::size_t page) {
  return base::mix(base::mix(static_cast<std::uint64_t>(id) + base::kGoldenRatio) + page + base::kGoldenRatio);
}

}  // namespace

Result<WindowDealer> WindowDealer::create(std::unique_ptr<Trace> trace, int pes, const Geometry& geometry) {
  if (pes < 1 || geometry.blocks < 2 || geometry.page < 1 || geometry.blocks / 2 * geometry.page < 2) {
    return fail(std::errc::invalid_argument,
                fmt::format("cannot deal requests to {} PEs with caches of {} blocks of {} tokens: half a cache must "
                            "hold a token",
                            pes, geometry.blocks, geometry.page));
  }
  WindowDealer dealer{std::move(trace), pes, geometry};
  if (auto ok = dealer.survey(); !ok) {
    return ok.error();
  }
  return dealer;
}

Result<void> WindowDealer::survey() {
  std::int64_t longest = 0;
  for (;;) {
    const auto request = trace_->next();
    if (!request) {
      return request.error();
    }
    if (!*request) {
      break;
    }
    ++requests_;
    longest = std::max(longest, (*request)->tokens());
  }
  if (requests_ == 0) {
    return fail(std::errc::invalid_argument, "the trace " + trace_->name() + " has no requests");
  }
  // The last page keeps room for a token.
  const std::int64_t blocks = std::max<std::int64_t>(geometry_.blocks / 2 / kLongestInHalf, 1);
  const std::int64_t most = std::max<std::int64_t>(blocks * geometry_.page - 1, 1);
  scale_ = std::max<std::int64_t>(divide_up(longest, most), 1);
  return trace_->rewind();
}

DealtSequence WindowDealer::scaled(const Request& request) const {
  DealtSequence sequence{divide_up(request.tokens(), scale_)};
  const std::int64_t step = geometry_.page * scale_;  // tokens of the trace in a page
  for (std::int64_t end = step; end <= request.input_tokens; end += step) {
    const auto block = static_cast<std::size_t>((end - 1) / kTokensOfPrefixBlock);
    if (block >= request.prefix_blocks.size()) {
      break;
    }
    sequence.hashes.push_back(hash_of_page(request.prefix_blocks[block], sequence.hashes.size()));
  }
  return sequence;
}

Result<DealtSequence> WindowDealer::next_sequence() {
  auto request = trace_->next();
  if (request && !*request) {
    if (auto ok = trace_->rewind(); !ok) {
      return ok.error();
    }
    request = trace_->next();
  }
  if (!request) {
    return request.error();
  }
  // The trace had requests when it was surveyed: the file has changed.
  if (!*request) {
    return fail(std::errc::io_error, "the trace " + trace_->name() + " has lost its requests");
  }
  return scaled(**request);
}

Result<TraceWindow> WindowDealer::next() {
  const std::int64_t half = geometry_.blocks / 2;
  TraceWindow window(static_cast<std::size_t>(pes_));
  std::vector<std::int64_t> used(window.size(), 0);
  for (std::size_t pe = 0;; pe = (pe + 1) % window.size()) {
    if (!waiting_) {
      auto sequence = next_sequence();
      if (!sequence) {
        return sequence.error();
      }
      waiting_ = *std::move(sequence);
    }
    const std::int64_t blocks = blocks_of(waiting_->tokens, geometry_.page);
    if (blocks > half - used[pe]) {
      if (used[pe] == 0) {
        return fail(std::errc::io_error, "the trace " + trace_->name() + " has grown a larger request");
      }
      return window;
    }
    used[pe] += blocks;
    window[pe].push_back(*std::exchange(waiting_, std::nullopt));
    ++dealt_;
  }
}

PageTables::PageTables(TraceWindow window, std::int64_t page) : window_(std::move(window)) {
  for (const auto& sequences : window_) {
    const auto add = [page](std::int64_t used, const DealtSequence& sequence) {
      return used + blocks_of(sequence.tokens, page);
    };
    used_.push_back(std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0}, add));
  }
  blocks_.resize(used_.empty() ? 0 : static_cast<std::size_t>(*std::max_element(used_.begin(), used_.end())));
  std::iota(blocks_.begin(), blocks_.end(), std::int64_t{0});
  for (std::size_t pe = 0; pe < window_.size(); ++pe) {
    const std::int64_t* first = blocks_.data();
    for (const DealtSequence& sequence : window_[pe]) {
      sequences_.push_back({.pe = static_cast<std::int64_t>(pe),
                            .tokens = sequence.tokens,
                            .blocks = first,
                            .block_count = blocks_of(sequence.tokens, page),
                            .hashes = sequence.hashes.data(),
                            .hash_count = static_cast<std::int64_t>(sequence.hashes.size())});
      first += sequences_.back().block_count;
    }
  }
}

}  // namespace kv_program
