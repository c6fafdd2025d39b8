// SPDX-License-Identifier: Apache-2.0
// Bytes and file descriptors over a Unix stream socket, each transfer with a deadline. Never raises SIGPIPE.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "driver/fd.hpp"
#include "driver/result.hpp"
#include "driver/wait.hpp"

namespace gba {

/// The most file descriptors that one message may carry to us.
constexpr std::size_t kMaxMessageFds = 8;

/// A non-blocking stream socket connected to the server at `name`: a path, or with a leading '@' an abstract name.
/// `shown` is what the user gave, for the error text. Errors are those of gba_open.
Result<UniqueFd> connect_unix(const std::string& name, const std::string& shown, Deadline deadline);

/// Sends all of `bytes`, with `fds` beside the first of them. The text of an error says only what came back:
/// "connection closed", "no answer in time".
Result<void> send_bytes(int socket, std::span<const std::byte> bytes, std::span<const int> fds, Deadline deadline);

/// Fills `bytes`. File descriptors that come beside them are appended to `fds`. Errors as above.
Result<void> receive_bytes(int socket, std::span<std::byte> bytes, std::vector<UniqueFd>& fds, Deadline deadline);

}  // namespace gba
