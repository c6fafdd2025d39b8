// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/store_bootstrap.hpp"

#include <fmt/format.h>

namespace shmem {

Result<std::vector<std::byte>> StoreBootstrap::allgather(std::span<const std::byte> mine) {
  ++step_;
  const auto key = [this](int pe) { return fmt::format("shmem/{}/{}", step_, pe); };
  // Some stores keep no empty value: a byte precedes each.
  std::vector<std::byte> value(1 + mine.size());
  std::copy(mine.begin(), mine.end(), value.begin() + 1);
  if (auto ok = store_.set(key(rank_), value); !ok) {
    return fail(ok.error().code,
                fmt::format("shmem: PE {}: cannot write to the key-value store: {}", rank_, ok.error().text));
  }
  std::vector<std::byte> all;
  all.reserve(mine.size() * static_cast<std::size_t>(size_));
  for (int pe = 0; pe < size_; ++pe) {
    if (pe == rank_) {
      all.insert(all.end(), mine.begin(), mine.end());
      continue;
    }
    if (auto ok = store_.get(key(pe), value); !ok) {
      return fail(ok.error().code, fmt::format("shmem: PE {}: step {} of the start waited for PE {}: {}", rank_, step_,
                                               pe, ok.error().text));
    }
    all.insert(all.end(), value.begin() + 1, value.end());
  }
  return all;
}

int StoreBootstrap::abort(int status, const std::string& reason) {
  if (end_ != nullptr) {
    set_end(*end_, {rank_, status, reason});
  }
  return status;
}

std::optional<std::string> StoreBootstrap::aborted() const {
  if (end_ == nullptr) {
    return std::nullopt;
  }
  const auto end = read_end(*end_);
  return end ? std::optional(end->reason) : std::nullopt;
}

}  // namespace shmem
