// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/windows.hpp"

#include <cmath>

#include "shmem/kv/builtin_trace.hpp"
#include "shmem/kv/program/round_plan.hpp"
#include "shmem/kv/trace_file.hpp"
#include "shmem/kv/trace_slice.hpp"

namespace kv_program {
namespace {

using shmem::Result;
using shmem::kv::DealtSequence;
using shmem::kv::Trace;
using shmem::kv::TraceWindow;
using OpenedTrace = Result<std::unique_ptr<Trace>>;

std::int64_t milliseconds(double seconds) {
  return static_cast<std::int64_t>(std::llround(seconds * 1000));
}

OpenedTrace open_trace(const Options& options) {
  auto trace = options.trace.empty() ? OpenedTrace(std::make_unique<shmem::kv::BuiltinTrace>())
                                     : shmem::kv::TraceFile::open(options.trace);
  if (!trace || (!options.from && !options.to)) {
    return trace;
  }
  const auto to = options.to ? std::optional(milliseconds(*options.to)) : std::nullopt;
  return shmem::kv::TraceSlice::create(*std::move(trace), milliseconds(options.from.value_or(0)), to);
}

}  // namespace

Windows::Windows(const Options& options)
    : options_(options), pes_(shmem_n_pes()), words_(most_words() * sizeof(std::uint64_t)) {}

std::size_t Windows::most_words() const {
  constexpr std::size_t kOfSequence = 3;  // tokens, number of hashes, a hash
  return 2 + static_cast<std::size_t>(pes_) * (1 + kOfSequence * static_cast<std::size_t>(options_.shape.blocks / 2));
}

Result<void> Windows::open() {
  if (shmem_my_pe() != 0) {
    return {};
  }
  auto trace = open_trace(options_);
  if (!trace) {
    return tl::make_unexpected(trace.error());
  }
  auto dealer = shmem::kv::WindowDealer::create(*std::move(trace), pes_, options_.geometry());
  if (!dealer) {
    return tl::make_unexpected(dealer.error());
  }
  dealer_.emplace(*std::move(dealer));
  return {};
}

Result<void> Windows::put_window() {
  if (!dealer_) {
    return {};
  }
  const auto window = dealer_->next();
  if (!window) {
    return tl::make_unexpected(window.error());
  }
  auto* word = reinterpret_cast<std::uint64_t*>(words_.get());
  *word++ = static_cast<std::uint64_t>(dealer_->dealt());
  *word++ = static_cast<std::uint64_t>(dealer_->requests());
  for (const auto& sequences : *window) {
    *word++ = sequences.size();
    for (const DealtSequence& sequence : sequences) {
      *word++ = static_cast<std::uint64_t>(sequence.tokens);
      *word++ = sequence.hashes.size();
      word = std::copy(sequence.hashes.begin(), sequence.hashes.end(), word);
    }
  }
  return {};
}

TraceWindow Windows::get_window() {
  std::vector<std::uint64_t> words(most_words());
  shmem_getmem(words.data(), words_.get(), words.size() * sizeof(std::uint64_t), 0);
  const std::uint64_t* word = words.data();
  share_ = static_cast<double>(word[0]) / static_cast<double>(word[1]);
  word += 2;
  TraceWindow window(static_cast<std::size_t>(pes_));
  for (auto& sequences : window) {
    for (auto left = *word++; left > 0; --left) {
      const auto tokens = static_cast<std::int64_t>(word[0]);
      const std::uint64_t* hashes = word + 2;
      word = hashes + word[1];
      sequences.push_back({tokens, {hashes, word}});
    }
  }
  return window;
}

Result<RoundPlan> Windows::next() {
  auto put = put_window();
  // Also the barrier between PE 0's writing and the others' reading.
  if (!agreement_.all(put.has_value())) {
    return put ? shmem::fail(std::errc::io_error, "") : tl::make_unexpected(put.error());
  }
  TraceWindow window = get_window();
  shmem_barrier_all();  // PE 0 writes the next window when all have read this one
  return plan_round(options_, std::move(window));
}

}  // namespace kv_program
