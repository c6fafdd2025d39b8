// SPDX-License-Identifier: Apache-2.0
// The environment that a PE starts with.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shmem::launcher {

/// Variables on top of, or in place of, those of this process. Not thread-safe.
class Environment {
 public:
  /// A copy of this process's.
  Environment();
  void set(const std::string& name, const std::string& value);
  [[nodiscard]] const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;  // "NAME=VALUE"
};

}  // namespace shmem::launcher
