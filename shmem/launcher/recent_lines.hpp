// SPDX-License-Identifier: Apache-2.0
// The last lines of each PE, to be shown again at the end of a job if those of other PEs have followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shmem::launcher {

/// Used by one thread.
class RecentLines {
 public:
  /// Kept of each PE.
  static constexpr std::size_t kLines = 10;
  static constexpr std::size_t kBytes = 2048;
  /// Lines of other PEs after which a PE's last line is not in sight any more.
  static constexpr std::uint64_t kScreen = 20;

  explicit RecentLines(int pes) : pes_(static_cast<std::size_t>(pes)) {}

  void add(int pe, std::string_view bytes);
  /// The last lines of `pe`, or nothing if they are still in sight, or there are none.
  [[nodiscard]] std::vector<std::string> out_of_sight(int pe) const;

 private:
  struct Pe {
    std::string tail;
    std::uint64_t last = 0;  // the number of lines of all PEs when it printed last
  };

  std::vector<Pe> pes_;
  std::uint64_t lines_ = 0;  // of all PEs
};

}  // namespace shmem::launcher
