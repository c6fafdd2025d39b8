// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/window.hpp"

#include <algorithm>
#include <numeric>

namespace shmem::kv {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Sequences of the longest length that half a cache holds.
constexpr std::int64_t kLongestInHalf = 5;

/// SplitMix64's mixing function: a bijection.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Of a page that ends in the block of the prompt with this id. The id stands for all of the prompt up to that block's
/// end, so the page's number is all that is left to say.
std::uint64_t hash_of_page(std::int64_t id, std::size_t page) {
  return mix(mix(static_cast<std::uint64_t>(id)) + page);
}

}  // namespace

Lengths lengths_of(const TraceWindow& window) {
  Lengths lengths;
  for (const auto& sequences : window) {
    auto& tokens = lengths.emplace_back();
    std::transform(sequences.begin(), sequences.end(), std::back_inserter(tokens),
                   [](const DealtSequence& sequence) { return sequence.tokens; });
  }
  return lengths;
}

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
  if (requests_ == 0) {
    return fail(std::errc::invalid_argument, "the trace " + trace_->name() + " has no requests");
  }
  // One place of the last page stays free.
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
        return tl::make_unexpected(sequence.error());
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
  std::vector<std::int64_t> firsts;
  std::int64_t most = 0;
  for (const auto& sequences : window_) {
    std::int64_t used = 0;
    for (const DealtSequence& sequence : sequences) {
      firsts.push_back(used);
      used += blocks_of(sequence.tokens, page);
    }
    most = std::max(most, used);
  }
  blocks_.resize(static_cast<std::size_t>(most));
  std::iota(blocks_.begin(), blocks_.end(), std::int64_t{0});
  for (std::size_t pe = 0; pe < window_.size(); ++pe) {
    for (const DealtSequence& sequence : window_[pe]) {
      const auto first = static_cast<std::size_t>(firsts[sequences_.size()]);
      const auto count = static_cast<std::size_t>(blocks_of(sequence.tokens, page));
      sequences_.push_back(
          {static_cast<std::int64_t>(pe), sequence.tokens, std::span(blocks_).subspan(first, count), sequence.hashes});
    }
  }
}

}  // namespace shmem::kv
