// SPDX-License-Identifier: Apache-2.0
// A file with one JSON array that several processes add to, and that is valid whenever nobody is writing: also when one
// of them is killed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// Owns the file's descriptor. Used by one thread at a time.
class TraceFile {
 public:
  /// Empties the file, or makes it, unless it is of this `job` already: text without quotes, different for each job.
  static Result<TraceFile> open(const std::string& path, const std::string& job);

  /// Adds elements, separated by commas. An Error if that cannot be done in some seconds, or the file has become
  /// another job's.
  Result<void> append(std::string_view elements);

 private:
  TraceFile(std::string path, const std::string& job, UniqueFd fd);
  Result<void> begin();
  [[nodiscard]] bool is_ours() const;
  [[nodiscard]] std::int64_t end_of_elements() const;
  Result<void> put(std::string_view text, std::int64_t offset) const;
  [[nodiscard]] tl::unexpected<Error> failed(const char* doing) const;

  std::string path_;
  std::string head_;  // what the file begins with
  UniqueFd fd_;
};

}  // namespace shmem
