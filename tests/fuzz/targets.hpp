// SPDX-License-Identifier: Apache-2.0
// What is fuzzed. A finding ends the process.
#pragma once

#include <cstddef>
#include <span>

namespace fuzz {

/// A stream of bytes, cut where the input says: the message decoder and the parser of VERSION.
void run_message(std::span<const std::byte> input);

/// Clients that do what the input says (script.hpp) to a device that has two well-behaved members of a group alongside
/// them: those must notice nothing, and in the end nothing of the clients may be left.
void run_session(std::span<const std::byte> input);

/// Processes that connect to the server of a job's bootstrap and send what the input says: the job's PE must join all
/// the same. Or a PE of the job whose bytes are changed on their way.
void run_uid(std::span<const std::byte> input);

/// Network addresses of other PEs.
void run_address(std::span<const std::byte> input);

/// Requests of other PEs to access this PE's memory.
void run_request(std::span<const std::byte> input);

/// A file as a request trace.
void run_trace(std::span<const std::byte> input);

/// A file as both tuning tables.
void run_tuning(std::span<const std::byte> input);

}  // namespace fuzz
