// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/recent_lines.hpp"

#include <algorithm>
#include <sstream>

namespace shmem::launcher {

void RecentLines::add(int pe, std::string_view bytes) {
  Pe& one = pes_[static_cast<std::size_t>(pe)];
  lines_ += static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  one.last = lines_;
  one.tail.append(bytes.substr(bytes.size() - std::min(bytes.size(), kBytes)));
  if (one.tail.size() > 2 * kBytes) {  // not for each line
    one.tail.erase(0, one.tail.size() - kBytes);
  }
}

std::vector<std::string> RecentLines::out_of_sight(int pe) const {
  const Pe& one = pes_[static_cast<std::size_t>(pe)];
  if (lines_ - one.last < kScreen || one.tail.empty()) {
    return {};
  }
  std::istringstream stream(one.tail.substr(one.tail.size() - std::min(one.tail.size(), kBytes)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(std::move(line));
  }
  lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(std::min(lines.size(), kLines)));
  return lines;
}

}  // namespace shmem::launcher
