// SPDX-License-Identifier: Apache-2.0
// Typed collectives over a bootstrap, and the messages of bootstraps in which PE 0 gathers and answers.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"

namespace shmem {

/// Collective: `mine` of all PEs, in rank order.
template <typename T>
requires std::is_trivially_copyable_v<T> Result<std::vector<T>> allgather(Bootstrap& bootstrap, const T& mine) {
  const auto bytes = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)));
  if (!bytes) {
    return bytes.error();
  }
  std::vector<T> all(static_cast<std::size_t>(bootstrap.size()));
  std::memcpy(all.data(), bytes->data(), all.size() * sizeof(T));
  return all;
}

/// A value and the PE that has it.
template <typename T>
struct BroughtBy {
  int pe;
  T what;
};

/// Collective: the `mine` of the first PE that has one, or nothing. For rare and large values, such as reasons: sent
/// only if a PE has one.
template <typename T>
Result<std::optional<BroughtBy<T>>> first_of(Bootstrap& bootstrap, const std::optional<T>& mine) {
  const auto has = allgather(bootstrap, std::uint8_t{mine ? std::uint8_t{1} : std::uint8_t{0}});
  if (!has) {
    return has.error();
  }
  const auto first = std::find(has->begin(), has->end(), 1);
  if (first == has->end()) {
    return std::optional<BroughtBy<T>>();
  }
  const auto all = allgather(bootstrap, mine.value_or(T{}));
  if (!all) {
    return all.error();
  }
  const auto pe = first - has->begin();
  return BroughtBy<T>{static_cast<int>(pe), (*all)[static_cast<std::size_t>(pe)]};
}

/// The Error of PEs that are in different steps: PE `pe` gives `bytes`, PE `other` gives `others`.
inline Error different_steps(std::size_t pe, std::uint64_t bytes, std::size_t other, std::uint64_t others) {
  return fail(
      std::errc::invalid_argument,
      fmt::format("shmem: the PEs are not in the same step of the job's bootstrap: PE {} sends {} bytes, PE {} sends "
                  "{}",
                  pe, bytes, other, others));
}

/// The most bytes of an Error's text in an answer.
constexpr std::size_t kMostAnswerText = 1024;

/// PE 0's answer to all PEs: the bytes that it gathered, or why it could not.
inline std::vector<std::byte> encode_answer(const Result<std::vector<std::byte>>& gathered) {
  const std::int64_t error = gathered ? 0 : static_cast<int>(gathered.error().code);
  const auto head = std::as_bytes(std::span(&error, 1));
  std::vector<std::byte> bytes(head.begin(), head.end());
  if (gathered) {
    bytes.insert(bytes.end(), gathered->begin(), gathered->end());
  } else {
    const auto text = std::as_bytes(std::span(gathered.error().text));
    bytes.insert(bytes.end(), text.begin(), text.begin() + std::min<std::ptrdiff_t>(std::ssize(text), kMostAnswerText));
  }
  return bytes;
}

/// The gathered bytes, or PE 0's Error. `size`: how many bytes there should be.
inline Result<std::vector<std::byte>> decode_answer(std::span<const std::byte> answer, std::size_t size) {
  std::int64_t error = 0;
  if (answer.size() < sizeof(error)) {
    return fail(std::errc::bad_message, "shmem: PE 0 gave no answer");
  }
  std::memcpy(&error, answer.data(), sizeof(error));
  const auto rest = answer.subspan(sizeof(error));
  if (error != 0) {
    return fail(std::errc{static_cast<int>(error)},
                std::string(reinterpret_cast<const char*>(rest.data()), rest.size()));
  }
  if (rest.size() != size) {
    return fail(std::errc::bad_message, fmt::format("shmem: PE 0 answered {} bytes, not {}", rest.size(), size));
  }
  return std::vector<std::byte>(rest.begin(), rest.end());
}

}  // namespace shmem
