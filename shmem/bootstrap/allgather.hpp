// SPDX-License-Identifier: Apache-2.0
// One object from everybody.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"

namespace shmem {

/// Everybody's `mine`, in rank order. Collective.
template <typename T>
requires std::is_trivially_copyable_v<T> Result<std::vector<T>> allgather(Bootstrap& bootstrap, const T& mine) {
  const auto bytes = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)));
  if (!bytes) return tl::make_unexpected(bytes.error());
  std::vector<T> all(static_cast<std::size_t>(bootstrap.size()));
  std::memcpy(all.data(), bytes->data(), all.size() * sizeof(T));
  return all;
}

}  // namespace shmem
