// SPDX-License-Identifier: Apache-2.0
// TCP addresses as text, and TCP sockets; the same for Unix sockets in the file system.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wire {

using base::Result;

/// An IPv4 or IPv6 address and a port, or a path.
struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;

  static Endpoint of(const sockaddr* address);
  /// REQUIRES: it fits into a sockaddr_un.
  static Endpoint at_path(const std::string& path);
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// True for 0.0.0.0 and [::], to which no PE can connect.
  [[nodiscard]] bool any_address() const;
  /// True for fe80::/10, which is valid on one link only.
  [[nodiscard]] bool link_local() const;
  /// "192.0.2.1", "::1", "/run/job/shmem-1".
  [[nodiscard]] std::string address_text() const;
  /// "192.0.2.1:4711", "[::1]:4711", the path; "a process of this machine" for a client that has none.
  [[nodiscard]] std::string text() const;
};

/// "ip:port", "[ipv6]:port" or "host:port", optionally after "tcp://" or "tcp6://". A host name is looked up; its first
/// address counts. The Error does not name the variable.
Result<Endpoint> parse_endpoint(const std::string& text);

/// The same, where this process is to listen: also 0.0.0.0 and [::], which parse_endpoint refuses.
Result<Endpoint> parse_listening_endpoint(const std::string& text);

/// The same for a service that is this machine's unless an address is given: also a port alone, of 127.0.0.1.
Result<Endpoint> parse_service_endpoint(const std::string& text);

/// A non-blocking socket that listens at `where` only; at [::] also for IPv4. If `where` has port 0, it gets the port
/// that was chosen.
Result<base::UniqueFd> listen_at(Endpoint& where);

/// A connection to `where` with blocking reads. std::errc::connection_refused: there is no listener.
Result<base::UniqueFd> connect_to(const Endpoint& where, std::chrono::steady_clock::time_point deadline);

/// Sets options for all connections: small messages are sent at once, a dead host is noticed within a minute.
void prepare_connection(int socket);

/// Sends all of `bytes`, however slowly they are accepted.
Result<void> send_all(int socket, std::span<const std::byte> bytes, std::chrono::steady_clock::time_point deadline);

}  // namespace wire
