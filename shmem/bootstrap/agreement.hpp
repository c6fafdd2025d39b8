// SPDX-License-Identifier: Apache-2.0
// Steps that succeed on all PEs or on none.
#pragma once

#include <array>
#include <optional>

#include "shmem/bootstrap/allgather.hpp"

namespace shmem {

/// Why a step failed on one PE. Fits one step of the local bootstrap.
struct Report {
  std::int32_t code;
  std::array<char, 396> text;
};

inline Report report_of(const Error& error) {
  Report report{};
  report.code = static_cast<std::int32_t>(error.code);
  error.text.copy(report.text.data(), report.text.size() - 1);
  return report;
}

/// Collective: success only if all PEs succeeded; else the Error of the first PE that failed, with its number.
template <typename T>
Result<void> agree(Bootstrap& bootstrap, const Result<T>& mine) {
  const auto failure = first_of(bootstrap.everybody(), mine ? std::nullopt : std::optional(report_of(mine.error())));
  if (!failure) {
    return mine ? failure.error() : mine.error();
  }
  if (!*failure) {
    return {};
  }
  const auto& [pe, report] = **failure;
  return fail(std::errc{report.code}, fmt::format("shmem: PE {}: {}", pe, report.text.data()));
}

}  // namespace shmem
