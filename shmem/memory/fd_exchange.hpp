// SPDX-License-Identifier: Apache-2.0
// PEs of a node that give each other a file descriptor.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/random_name.hpp"
#include "shmem/memory/node_socket.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// One PE's end: a Unix socket. Only messages of processes of our user that know the secret
/// count. All other processes can send, too: what comes with their messages is closed where no PE waits for it.
class FdExchange {
 public:
  /// The socket is "shmem-" and the name; who sends to it shows the secret.
  struct Address {
    base::RandomName name;
    base::RandomName secret;
  };
  struct Peer {
    Address address;
    bool gives;  // a descriptor
  };
  /// Called now and then with the numbers of the PEs that are awaited: an Error ends the call.
  using Check = std::function<Result<void>(const std::vector<int>& awaited)>;

  /// In a folder, which PEs of all namespaces of the machine can have; "": outside the file system.
  static Result<FdExchange> open(const std::string& folder = {});
  [[nodiscard]] const Address& address() const { return address_; }

  /// Collective among the peers, once: gives `mine` (-1: none) to each, and returns theirs. The index of a peer is its
  /// number; an empty one is this PE, or takes no part. If a descriptor cannot be given, both ends get an Error.
  Result<std::vector<base::UniqueFd>> exchange(int mine, int me, std::span<const std::optional<Peer>> peers,
                                               const Check& check);

 private:
  class Round;
  FdExchange(NodeSocket socket, const Address& address, std::string folder)
      : socket_(std::move(socket)), address_(address), folder_(std::move(folder)) {}

  NodeSocket socket_;
  Address address_;
  std::string folder_;
};

}  // namespace shmem
