// SPDX-License-Identifier: Apache-2.0
#include "wire/interfaces.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

namespace wire {

namespace {

bool is_of_guests(const std::string& interface) {
  constexpr std::array<std::string_view, 6> kPrefixes{"docker", "veth", "br-", "virbr", "tun", "tap"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return interface.rfind(prefix, 0) == 0; });
}

/// Lower is better; nothing: unusable.
std::optional<int> preference(const InterfaceAddress& one, const std::optional<InterfaceChoice>& choice) {
  if (!one.up || one.address.link_local()) {
    return std::nullopt;
  }
  const int family = one.address.family() == AF_INET ? 0 : 1;
  if (choice) {
    const bool wanted = choice->family == AF_UNSPEC || choice->family == one.address.family();
    return one.name == choice->name && wanted ? std::optional(family) : std::nullopt;
  }
  if (one.loopback) {
    return 2 + family;
  }
  return is_of_guests(one.name) ? std::nullopt : std::optional(family);
}

std::string choice_text(const InterfaceChoice& choice) {
  std::string text = "SHMEM_UID_SOCK_IFNAME=" + choice.name;
  if (choice.family != AF_UNSPEC) {
    text += choice.family == AF_INET ? ":inet4" : ":inet6";
  }
  return text;
}

}  // namespace

Result<InterfaceChoice> parse_interface(const std::string& text) {
  const auto colon = text.find(':');
  InterfaceChoice choice{text.substr(0, colon)};
  const std::string family = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (family == "inet4") {
    choice.family = AF_INET;
  }
  if (family == "inet6") {
    choice.family = AF_INET6;
  }
  if (choice.name.empty() || (colon != std::string::npos && choice.family == AF_UNSPEC)) {
    return fail(
        std::errc::invalid_argument,
        fmt::format("shmem: SHMEM_UID_SOCK_IFNAME={} is not the name of an interface, optionally followed by :inet4 "
                    "or :inet6",
                    text));
  }
  return choice;
}

Result<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return fail_errno(errno, "shmem: cannot list this host's network interfaces");
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> all;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) {
      continue;
    }
    if (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6) {
      continue;
    }
    all.push_back({one->ifa_name, Endpoint::of(one->ifa_addr), (one->ifa_flags & IFF_UP) != 0,
                   (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return all;
}

std::string interfaces_text(const std::vector<InterfaceAddress>& all) {
  std::string text;
  for (const InterfaceAddress& one : all) {
    text += (text.empty() ? "" : ", ") + one.name + " " + one.address.address_text() + (one.up ? "" : " (down)");
  }
  return text.empty() ? "none" : text;
}

Result<Endpoint> choose_address(const std::vector<InterfaceAddress>& all,
                                const std::optional<InterfaceChoice>& choice) {
  const InterfaceAddress* best = nullptr;
  for (const InterfaceAddress& one : all) {
    const auto mine = preference(one, choice);
    if (mine && (best == nullptr || *mine < *preference(*best, choice))) {
      best = &one;
    }
  }
  if (best == nullptr) {
    return fail(std::errc::address_not_available,
                fmt::format("shmem: {}; this host's are: {}; set SHMEM_UID_SOCK_IFNAME to one of them, or "
                            "SHMEM_UID_SESSION_ID to ip:port",
                            choice ? choice_text(*choice) + ": that interface has no address that can be used here"
                                   : "no network interface has an address that can be used",
                            interfaces_text(all)));
  }
  return best->address;
}

}  // namespace wire
