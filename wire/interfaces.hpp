// SPDX-License-Identifier: Apache-2.0
// The choice of one of this node's addresses, at which PE 0 listens.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "wire/endpoint.hpp"

namespace wire {

/// The value of SHMEM_UID_SOCK_IFNAME: an interface, and AF_INET, AF_INET6 or AF_UNSPEC.
struct InterfaceChoice {
  std::string name;
  int family = AF_UNSPEC;
};
/// "name", "name:inet4" or "name:inet6".
Result<InterfaceChoice> parse_interface(const std::string& text);

/// One address of one interface of this host.
struct InterfaceAddress {
  std::string name;
  Endpoint address;
  bool up = false;
  bool loopback = false;
};
Result<std::vector<InterfaceAddress>> interface_addresses();
/// "eth0 192.0.2.1, lo 127.0.0.1".
std::string interfaces_text(const std::vector<InterfaceAddress>& all);

/// The address to listen at, with port 0. With a choice: that interface's. Without: the first one that other hosts can
/// reach, skipping bridges and tunnels of containers and virtual machines; loopback if there is no other, for a job on
/// one host. IPv4 before IPv6, never link-local. The Error names all candidates and the variable to set.
Result<Endpoint> choose_address(const std::vector<InterfaceAddress>& all, const std::optional<InterfaceChoice>& choice);

}  // namespace wire
