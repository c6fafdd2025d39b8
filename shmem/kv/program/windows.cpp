// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/windows.hpp"

#include <algorithm>

#include "shmem/kv/builtin_trace.hpp"
#include "shmem/kv/trace_file.hpp"

namespace kv_program {

using shmem::Result;
using shmem::kv::Lengths;

Windows::Windows(const Options& options)
    : geometry_(options.geometry()),
      pes_(shmem_n_pes()),
      lengths_(static_cast<std::size_t>(pes_) * row_length() * sizeof(std::int64_t)) {}

Result<void> Windows::open(const std::string& path) {
  if (shmem_my_pe() != 0) {
    return {};
  }
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

std::string Windows::describe() const {
  std::string text = dealer_->trace().name() + ", " + std::to_string(dealer_->requests()) + " requests";
  if (dealer_->scale() > 1) {
    text += ", their tokens scaled by 1/" + std::to_string(dealer_->scale()) + " to fit the caches";
  }
  return text;
}

Result<void> Windows::put_window() {
  if (!dealer_) {
    return {};
  }
  const auto lengths = dealer_->next();
  if (!lengths) {
    return tl::make_unexpected(lengths.error());
  }
  auto* row = reinterpret_cast<std::int64_t*>(lengths_.get());
  for (const auto& sequences : *lengths) {
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

Result<shmem::kv::PairPlan> Windows::next() {
  auto put = put_window();
  // Also the barrier between PE 0's writing and the others' reading.
  if (!agreement_.all(put.has_value())) {
    return put ? shmem::fail(std::errc::io_error, "") : tl::make_unexpected(put.error());
  }
  const Lengths lengths = get_window();
  shmem_barrier_all();  // PE 0 writes the next window when all have read this one
  return shmem::kv::plan_pairs(lengths, geometry_);
}

}  // namespace kv_program
