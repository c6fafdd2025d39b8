// SPDX-License-Identifier: Apache-2.0
// One object from everybody, or from the first who has one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
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

/// What one PE brings.
template <typename T>
struct BroughtBy {
  int pe;
  T what;
};

/// The `mine` of the first PE that has one; nothing if nobody has. Collective. For what is rare and large, such as
/// reasons: it travels only if there is any, or else hundreds of PEs had hundreds of empty texts each.
template <typename T>
Result<std::optional<BroughtBy<T>>> first_of(Bootstrap& bootstrap, const std::optional<T>& mine) {
  const auto has = allgather(bootstrap, std::uint8_t{mine ? std::uint8_t{1} : std::uint8_t{0}});
  if (!has) return tl::make_unexpected(has.error());
  const auto first = std::find(has->begin(), has->end(), 1);
  if (first == has->end()) return std::optional<BroughtBy<T>>();
  const auto all = allgather(bootstrap, mine.value_or(T{}));
  if (!all) return tl::make_unexpected(all.error());
  const auto pe = first - has->begin();
  return BroughtBy<T>{static_cast<int>(pe), (*all)[static_cast<std::size_t>(pe)]};
}

}  // namespace shmem
