// SPDX-License-Identifier: Apache-2.0
// TCP sockets as the bootstrap wants them.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "shmem/bootstrap/uid_address.hpp"
#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// A socket that listens at `where` and nowhere else, non-blocking. `where` gets the port that was chosen if it had
/// none.
Result<UniqueFd> listen_at(Endpoint& where);

/// A connection to `where`, blocking to read. std::errc::connection_refused: nobody listens there.
Result<UniqueFd> connect_to(const Endpoint& where, std::chrono::steady_clock::time_point deadline);

/// What all connections need: closed on exec, small messages sent at once, a dead host noticed within a minute.
void prepare_connection(int socket);

/// All of `bytes`, however slowly they are taken.
Result<void> send_all(int socket, std::span<const std::byte> bytes, std::chrono::steady_clock::time_point deadline);

}  // namespace shmem
