// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/eventfds.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "driver/tool/sysfs.hpp"

namespace tool {

std::vector<int> open_eventfds() {
  const std::string folder = "/proc/self/fd/";
  std::vector<int> found;
  for (const auto& name : names_in(folder)) {
    if (link_name(folder + name) == "anon_inode:[eventfd]") found.push_back(std::stoi(name));
  }
  return found;
}

int new_eventfd(const std::vector<int>& before) {
  for (const int eventfd : open_eventfds()) {
    if (std::find(before.begin(), before.end(), eventfd) == before.end()) return eventfd;
  }
  return -1;
}

void drain(int eventfd) {
  std::uint64_t count = 0;
  if (::read(eventfd, &count, sizeof count) < 0) return;  // nothing was told
}

bool comes(int eventfd, std::uint64_t patience_ns) {
  constexpr std::uint64_t kNsPerMs = 1'000'000;
  pollfd event{.fd = eventfd, .events = POLLIN, .revents = 0};
  return ::poll(&event, 1, static_cast<int>(patience_ns / kNsPerMs)) == 1;
}

}  // namespace tool
