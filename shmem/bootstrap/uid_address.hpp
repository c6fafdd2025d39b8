// SPDX-License-Identifier: Apache-2.0
// Where PE 0 listens for the others: TCP addresses as text, and the choice of one of this host's.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shmem/result.hpp"

namespace shmem {

/// An IPv4 or IPv6 address and a port.
struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;

  static Endpoint of(const sockaddr* address);
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// True for 0.0.0.0 and [::], which nobody can connect to.
  [[nodiscard]] bool any_address() const;
  /// True for fe80::/10, which means nothing on another host.
  [[nodiscard]] bool link_local() const;
  /// "192.0.2.1", "::1".
  [[nodiscard]] std::string address_text() const;
  /// "192.0.2.1:4711", "[::1]:4711".
  [[nodiscard]] std::string text() const;
};

/// "ip:port", "[ipv6]:port" or "host:port", with "tcp://" or "tcp6://" before it if the user likes. A host's name is
/// looked up; its first address counts. The Error says what is wrong, without naming the variable.
Result<Endpoint> parse_endpoint(const std::string& text);

/// What SHMEM_UID_SOCK_IFNAME says: an interface, and AF_INET, AF_INET6 or AF_UNSPEC.
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

/// The address to listen at, port 0. With a choice: that interface's. Without: the first that other hosts can reach,
/// bridges and tunnels of containers and virtual machines left out; loopback where there is no other, for a job on one
/// host. IPv4 before IPv6, no link-local ones. The Error names all candidates and the variable to set.
Result<Endpoint> choose_address(const std::vector<InterfaceAddress>& all, const std::optional<InterfaceChoice>& choice);

}  // namespace shmem
