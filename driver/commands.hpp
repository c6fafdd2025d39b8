// SPDX-License-Identifier: Apache-2.0
// The command registers: ALLOC, FREE, JOIN, LEAVE.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "driver/backend.hpp"
#include "driver/registers.hpp"

namespace gba {

struct Command {
  std::uint8_t opcode = 0;
  std::uint8_t group = 0;
  std::uint16_t member = 0;
  std::uint32_t key = 0;
};

/// Runs commands, one at a time (uapi rule 4). Thread-safe. A view of what it is made from.
class Commands {
 public:
  /// A device that is busy with one command for longer than `timeout` is lost.
  Commands(Backend& backend, const Registers& control, std::chrono::nanoseconds timeout = std::chrono::seconds{5})
      : backend_(backend), control_(control), timeout_(timeout) {}

  /// Runs the command and gives CMD_RESULT. `doing` is for the error text: "join group 3 as member 5". A refusal is
  /// the errno that gba.h has for it.
  Result<std::uint64_t> run(const Command& command, const std::string& doing);

 private:
  Result<std::uint64_t> finished_status();

  Backend& backend_;
  const Registers& control_;
  const std::chrono::nanoseconds timeout_;
  std::mutex mutex_;  // the registers hold one command
};

}  // namespace gba
