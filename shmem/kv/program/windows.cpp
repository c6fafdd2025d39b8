// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/windows.hpp"

#include <algorithm>
#include <numeric>

#include "shmem/kv/builtin_trace.hpp"
#include "shmem/kv/trace_file.hpp"

namespace kv_program {

using shmem::Result;
using shmem::kv::Lengths;
using shmem::kv::PairPlan;

namespace {

std::vector<std::int64_t> tokens_of(const Lengths& lengths) {
  std::vector<std::int64_t> tokens;
  for (const auto& sequences : lengths) {
    tokens.push_back(std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0}));
  }
  return tokens;
}

/// A sequence that is sent counts where it goes to: that PE goes on with it.
std::vector<std::int64_t> tokens_after(const Lengths& lengths, const PairPlan& plan, std::int64_t page) {
  std::vector<std::int64_t> tokens = tokens_of(lengths);
  for (std::size_t pe = 0; pe < plan.size(); ++pe) {
    const auto& source = plan[pe].source;
    std::int64_t first = 0;
    for (const std::int64_t length : lengths[pe]) {
      if (plan[pe].operation == 0 && std::binary_search(source.begin(), source.end(), first)) {
        tokens[pe] -= length;
        tokens[static_cast<std::size_t>(plan[pe].peer)] += length;
      }
      first += shmem::kv::blocks_of(length, page);
    }
  }
  return tokens;
}

}  // namespace

Windows::Windows(const Options& options)
    : options_(options),
      geometry_(options.geometry()),
      pes_(shmem_n_pes()),
      lengths_(static_cast<std::size_t>(pes_) * row_length() * sizeof(std::int64_t)) {}

Result<void> Windows::open() {
  if (shmem_my_pe() != 0) {
    return {};
  }
  const std::string& path = options_.trace;
  auto trace = path.empty() ? Result<std::unique_ptr<shmem::kv::Trace>>(std::make_unique<shmem::kv::BuiltinTrace>())
                            : shmem::kv::TraceFile::open(path);
  if (!trace) {
    return tl::make_unexpected(trace.error());
  }
  auto dealer = shmem::kv::WindowDealer::create(*std::move(trace), pes_, geometry_);
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
  auto* row = reinterpret_cast<std::int64_t*>(lengths_.get());
  for (const auto& sequences : shmem::kv::lengths_of(*window)) {
    *row = static_cast<std::int64_t>(sequences.size());
    std::copy(sequences.begin(), sequences.end(), row + 1);
    row += row_length();
  }
  return {};
}

Lengths Windows::get_window() const {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(pes_) * row_length());
  shmem_getmem(rows.data(), lengths_.get(), rows.size() * sizeof(std::int64_t), 0);
  Lengths lengths;
  for (int pe = 0; pe < pes_; ++pe) {
    const std::int64_t* row = rows.data() + static_cast<std::size_t>(pe) * row_length();
    lengths.emplace_back(row + 1, row + 1 + *row);
  }
  return lengths;
}

Result<RoundPlan> Windows::next() {
  auto put = put_window();
  // Also the barrier between PE 0's writing and the others' reading.
  if (!agreement_.all(put.has_value())) {
    return put ? shmem::fail(std::errc::io_error, "") : tl::make_unexpected(put.error());
  }
  const Lengths lengths = get_window();
  shmem_barrier_all();  // PE 0 writes the next window when all have read this one
  auto pairs = shmem::kv::plan_pairs(lengths, geometry_);
  if (!pairs) {
    return tl::make_unexpected(pairs.error());
  }
  RoundPlan plan{*std::move(pairs), {}, tokens_of(lengths), {}};
  plan.moves = shmem::kv::moves_of(plan.pairs);
  plan.after = tokens_after(lengths, plan.pairs, geometry_.page);
  return plan;
}

}  // namespace kv_program
