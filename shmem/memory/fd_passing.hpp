// SPDX-License-Identifier: Apache-2.0
// Hands file descriptors from the node's leader to its other PEs, under any launcher. By connections, which FdExchange
// has not: a PE notices at once that the leader has gone, the leader sees which user gets the node's memory, and one
// name is all that the others have to be told.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/random_name.hpp"
#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/memory/node_socket.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The most descriptors that can be handed out at once.
constexpr std::size_t kMostPassedFds = 4;

/// The leader's end: a Unix socket that serves only processes of our user. It waits for no other process, and for
/// several PEs at a time.
class FdServer {
 public:
  /// In a folder, which PEs of all namespaces of the machine can have; "": outside the file system.
  static Result<FdServer> open(const std::string& folder = {});

  /// The socket is "shmem-" and this name, which the other PEs get by allgather.
  [[nodiscard]] const base::RandomName& name() const { return name_; }

  /// Gives `fds` to each of the PEs 1 to pes - 1, once. Returns an Error when the job is aborted, and at `deadline` one
  /// that names the PEs that did not ask.
  Result<void> serve(std::span<const int> fds, int pes, std::chrono::steady_clock::time_point deadline,
                     const Bootstrap& bootstrap);

 private:
  class Round;
  FdServer(NodeSocket socket, const base::RandomName& name) : socket_(std::move(socket)), name_(name) {}

  NodeSocket socket_;
  base::RandomName name_;
};

/// Another PE's end. open() finds local problems before the leader counts on this PE.
class FdClient {
 public:
  static Result<FdClient> open(const std::string& folder = {});

  /// Connects, sends `pe`, and receives the leader's descriptors in order, closed on exec. If the leader has gone, the
  /// Error is why the job has ended, as soon as that is known. Once only.
  Result<std::vector<base::UniqueFd>> fetch(const base::RandomName& name, int pe, std::chrono::milliseconds limit,
                                            const Bootstrap& bootstrap);

 private:
  FdClient(base::UniqueFd socket, std::string folder) : socket_(std::move(socket)), folder_(std::move(folder)) {}
  Result<std::vector<base::UniqueFd>> try_fetch(const base::RandomName& name, int pe, std::chrono::milliseconds limit);

  base::UniqueFd socket_;
  std::string folder_;
};

}  // namespace shmem
