// SPDX-License-Identifier: Apache-2.0
#include "wire/strangers.hpp"

#include <netinet/in.h>

#include <array>
#include <cstring>
#include <map>
#include <utility>

namespace wire {

namespace {

using Group = std::pair<std::array<unsigned char, sizeof(in6_addr)>, bool>;

Group group_of(const Stranger& stranger) {
  Group group{{}, stranger.has_greeted};
  const sockaddr* const from = stranger.from->get();
  if (stranger.from->family() == AF_INET6) {
    std::memcpy(group.first.data(), &reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr, sizeof(in6_addr));
  } else {
    std::memcpy(group.first.data(), &reinterpret_cast<const sockaddr_in*>(from)->sin_addr, sizeof(in_addr));
  }
  return group;
}

}  // namespace

std::size_t place_to_free(std::span<const Stranger> strangers) {
  struct Members {
    std::size_t oldest;
    std::size_t count;
  };
  std::map<Group, Members> groups;
  Members largest{};
  for (std::size_t i = 0; i < strangers.size(); ++i) {
    Members& group = groups.try_emplace(group_of(strangers[i]), Members{i, 0}).first->second;
    if (++group.count > largest.count) {
      largest = group;
    }
  }
  return largest.oldest;
}

}  // namespace wire
