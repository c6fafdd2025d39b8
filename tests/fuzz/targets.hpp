// SPDX-License-Identifier: Apache-2.0
// The fuzz targets. A finding aborts the process.
#pragma once

#include <cstddef>
#include <span>

namespace fuzz {

/// The message decoder and the parser of VERSION, with a stream of bytes in pieces.
void run_message(std::span<const std::byte> input);

/// Clients that do what the input says (script.hpp) to a device that also has two well-behaved members of a group. The
/// members must not notice the clients, and in the end nothing of the clients may be left.
void run_session(std::span<const std::byte> input);

/// Strangers that connect to the server of a job's bootstrap and send what the input says; the job's PE must still be
/// able to join. Or a PE of the job whose bytes are changed on their way.
void run_uid(std::span<const std::byte> input);

/// Network addresses of other PEs.
void run_address(std::span<const std::byte> input);

/// Requests of other PEs to access this PE's memory.
void run_request(std::span<const std::byte> input);

/// Answers of other PEs to this PE's requests.
void run_answer(std::span<const std::byte> input);

/// The reader of request traces, with any file.
void run_trace(std::span<const std::byte> input);

/// The reader of another member's directory of an exchange.
void run_directory(std::span<const std::byte> input);

/// What members of an exchange on different nodes send: requests of readers, answers of owners, or frames of links.
void run_remote(std::span<const std::byte> input);

/// The other end of a link between nodes, which knows the secret and sends what the input says. The member must still
/// answer others.
void run_links(std::span<const std::byte> input);

/// The readers of both tuning tables, with any file.
void run_tuning(std::span<const std::byte> input);

}  // namespace fuzz
