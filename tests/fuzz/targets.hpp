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

}  // namespace fuzz
