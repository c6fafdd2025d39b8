// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/guest_run.hpp"

#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>

#include "tests/support/job.hpp"
#include "tests/vm/console.hpp"
#include "tests/vm/machine.hpp"
#include "tools/raw_client/raw_client.hpp"

namespace vm {
namespace {

using test_support::Seconds;

constexpr Seconds kBootLimit{600};
constexpr Seconds kStepLimit{300};

void make_initramfs(const std::string& kernel, const std::string& output) {
  const std::string script = GBA_SOURCE_DIR "/tests/vm/make-initramfs.sh";
  const auto outcome =
      test_support::run({script, cache_folder(), kernel, test_support::test_program("vm_guest"), output});
  if (!outcome.exit.clean()) {
    throw std::runtime_error("make-initramfs.sh failed: " + outcome.output);
  }
}

/// Waits for the guest's invitation to the group `name`.
std::optional<raw::Port::Group> invitation(Machine& machine, const std::string& name, Seconds limit) {
  const auto line = machine.wait_for_line(kGroup + name + " ", limit);
  raw::Port::Group group{};
  const bool valid = line && std::sscanf(line->c_str(), "%u %u", &group.id, &group.key) == 2;
  return valid ? std::optional(group) : std::nullopt;
}

/// Runs rounds 1 to `rounds` as `member`; returns how many were released.
unsigned run_barriers(raw::Port& port, const raw::Port::Group& group, unsigned member, unsigned rounds) {
  port.join(group, member);
  std::uint64_t word = port.flag(group);  // from an earlier group
  for (unsigned round = 1; round <= rounds; ++round) {
    port.arrive(group, member, round);
    word = port.wait_flag(group, word);
    if (GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word) != round) {  // uapi rule 18: a later error does not count
      return round - 1;
    }
  }
  return rounds;
}

/// Joins the guest's groups as the other member.
void be_member(raw::Port& host, Machine& machine, GuestRun& run) {
  if (const auto group = invitation(machine, kSharedGroup, kBootLimit)) {
    run.shared_rounds = run_barriers(host, *group, 1, kRounds);
  }
  if (const auto group = invitation(machine, kResetGroup, kStepLimit)) {
    if (run_barriers(host, *group, 1, 1) == 1) {
      run.word_after_reset = host.wait_flag(*group, 1);
    }
  }
  if (const auto group = invitation(machine, kThreeMembersGroup, kStepLimit)) {
    run.three_member_rounds = run_barriers(host, *group, 2, kRounds);
  }
  if (const auto group = invitation(machine, kUnplugGroup, kStepLimit)) {
    const auto rounds = run_barriers(host, *group, 2, 1);
    if (rounds == 1 && machine.wait_for_line(kUnplug, kStepLimit)) {
      machine.unplug_second_function();
      run.word_after_unplug = host.wait_flag(*group, 1);
    }
  }
}

void accompany(Machine& machine, const std::string& socket, GuestRun& run) {
  raw::Port host(socket);  // kept to the end: a group without another member would vanish with the guest's reset
  try {
    be_member(host, machine, run);
  } catch (const std::exception& error) {
    run.host = error.what();
  }
  const auto exit = machine.process().wait(kStepLimit);
  run.switched_off = exit && exit->clean();
  run.console = machine.console();
  run.qemu = machine.process().output();
  run.received_messages = machine.received_messages();
}

}  // namespace

GuestRun run_guest(const std::string& kernel) {
  GuestRun run;
  const test_support::TempDir dir;
  make_initramfs(kernel, dir.file("initramfs"));
  std::string socket;
  {
    const test_support::FakeDevice device({"--trust-memory"});
    socket = device.socket();
    Machine machine(kernel, dir.file("initramfs"), socket);
    accompany(machine, socket, run);
  }
  run.processes_left = test_support::processes_matching(socket).size();
  return run;
}

}  // namespace vm
