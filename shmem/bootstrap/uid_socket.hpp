// SPDX-License-Identifier: Apache-2.0
// Where PE 0 listens (TCP addresses as text, and the choice of one of this node's addresses), and TCP sockets.
#pragma once

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
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
  /// True for 0.0.0.0 and [::], to which no PE can connect.
  [[nodiscard]] bool any_address() const;
  /// True for fe80::/10, which is valid on one link only.
  [[nodiscard]] bool link_local() const;
  /// "192.0.2.1", "::1".
  [[nodiscard]] std::string address_text() const;
  /// "192.0.2.1:4711", "[::1]:4711".
  [[nodiscard]] std::string text() const;
};

/// "ip:port", "[ipv6]:port" or "host:port", optionally after "tcp://" or "tcp6://". A host name is looked up; its first
/// address counts. The Error does not name the variable.
Result<Endpoint> parse_endpoint(const std::string& text);

/// The same, where this process is to listen: also 0.0.0.0 and [::], which parse_endpoint refuses.
Result<Endpoint> parse_listening_endpoint(const std::string& text);

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

/// A non-blocking socket that listens at `where` only. If `where` has port 0, it gets the port that was chosen.
Result<base::UniqueFd> listen_at(Endpoint& where);

/// A connection to `where` with blocking reads. std::errc::connection_refused: there is no listener.
Result<base::UniqueFd> connect_to(const Endpoint& where, std::chrono::steady_clock::time_point deadline);

/// Sets options for all connections: small messages are sent at once, a dead host is noticed within a minute.
void prepare_connection(int socket);

/// Sends all of `bytes`, however slowly they are accepted.
Result<void> send_all(int socket, std::span<const std::byte> bytes, std::chrono::steady_clock::time_point deadline);

}  // namespace shmem
