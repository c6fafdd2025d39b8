// SPDX-License-Identifier: Apache-2.0
// Hands file descriptors from the node's leader to its other PEs, under any launcher.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/memory/fd.hpp"
#include "shmem/memory/random_name.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// Most that can be handed out at once.
constexpr std::size_t kMostPassedFds = 4;

/// The leader's end: a Unix socket that stands in no file system and that only processes of our user are answered on.
class FdServer {
 public:
  static Result<FdServer> open();

  /// The abstract socket is "shmem-" and this; told to the others by allgather.
  [[nodiscard]] const RandomName& name() const { return name_; }

  /// Gives `fds` to each of the PEs 1 to pes - 1, once. Ends early with an Error when the job is aborted, and at
  /// `deadline` with one that names who did not ask.
  Result<void> serve(std::span<const int> fds, int pes, std::chrono::steady_clock::time_point deadline,
                     const Bootstrap& bootstrap);

 private:
  FdServer(UniqueFd socket, const RandomName& name) : socket_(std::move(socket)), name_(name) {}

  UniqueFd socket_;
  RandomName name_;
};

/// Another PE's end. What can be wrong on this side is found out by open(), before the leader counts on it.
class FdClient {
 public:
  static Result<FdClient> open();

  /// Connects, says that it is `pe`, and gets the leader's descriptors in their order, closed on exec. Once only.
  Result<std::vector<UniqueFd>> fetch(const RandomName& name, int pe, std::chrono::milliseconds limit);

 private:
  explicit FdClient(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
};

}  // namespace shmem
