// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/trace_slice.hpp"

#include <array>
#include <cstdio>

namespace shmem::kv {
namespace {

std::string seconds(std::int64_t ms) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.15g s", static_cast<double>(ms) / 1000);
  return text.data();
}

}  // namespace

Result<std::unique_ptr<Trace>> TraceSlice::create(std::unique_ptr<Trace> trace, std::int64_t from_ms,
                                                  std::optional<std::int64_t> to_ms) {
  std::unique_ptr<TraceSlice> slice{new TraceSlice(std::move(trace), from_ms, to_ms)};
  if (from_ms < 0 || (to_ms && *to_ms <= from_ms)) {
    return fail(std::errc::invalid_argument, "no request can be in the trace " + slice->name());
  }
  return slice;
}

Result<std::optional<Request>> TraceSlice::next() {
  for (;;) {
    auto request = trace_->next();
    if (!request || !*request) {
      return request;
    }
    first_ms_ = first_ms_.value_or((*request)->arrival_ms);
    const std::int64_t time = (*request)->arrival_ms - *first_ms_;
    if (to_ms_ && time >= *to_ms_) {
      return std::optional<Request>{};
    }
    if (time >= from_ms_) {
      return request;
    }
  }
}

Result<void> TraceSlice::rewind() {
  first_ms_.reset();
  return trace_->rewind();
}

std::string TraceSlice::name() const {
  return trace_->name() + " from " + seconds(from_ms_) + (to_ms_ ? " to " + seconds(*to_ms_) : " on");
}

}  // namespace shmem::kv
