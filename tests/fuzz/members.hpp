// SPDX-License-Identifier: Apache-2.0
// Two well-behaved members of a group, which must not notice any misbehaviour of the clients.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "tests/fuzz/device.hpp"

namespace fuzz {

/// A well-behaved port: a function without a connection.
class Member final : public fake_device::FunctionClient {
 public:
  Member(Device& device, unsigned port);

  std::uint64_t read(std::uint64_t offset, std::size_t size = 8);
  void write(std::uint64_t offset, std::uint64_t value, std::size_t size = 8);
  void join(unsigned group, std::uint32_t key, unsigned member);
  /// Runs a command and returns its error code.
  unsigned command(unsigned opcode, unsigned group = 0, unsigned member = 0, std::uint32_t key = 0);
  void ring(unsigned group, unsigned member, std::uint64_t sequence);
  /// The flag: in the member's own memory for the first member, in BAR4 for the second.
  [[nodiscard]] std::uint64_t flag(unsigned group) const;
  /// The number of interrupts since the last call.
  std::uint64_t interrupts();

  void send_store(unsigned group, std::uint64_t iova, std::uint64_t word) override;
  bool hold_interrupt(unsigned /*vector*/) override { return false; }
  void doom() override;
  void note(const std::string& /*text*/) override {}
  void warn(const std::string& /*text*/) override {}

 private:
  void give_memory();
  fake_device::Given given(base::UniqueFd fd);
  void take_interrupts(unsigned vector);

  Device& device_;
  std::unique_ptr<fake_device::Function> function_;
  base::Mapping memory_;
  base::UniqueFd eventfd_;
};

class Members {
 public:
  explicit Members(Device& device);
  /// Both arrive. Checks that they are released and woken and that nothing else has happened to them.
  void do_barrier();
  /// Checks that all groups but theirs are free. REQUIRES: no other port is connected.
  void check_groups_are_free();

 private:
  Device& device_;
  std::array<Member, kMembers> members_;
  unsigned group_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace fuzz
