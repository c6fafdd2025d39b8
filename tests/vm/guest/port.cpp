// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/guest/port.hpp"

#include <sched.h>

#include <chrono>

#include "driver/mmio.hpp"
#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kWaitLimit{20};

template <typename Condition>
void wait_for(const Condition& condition) {
  const auto end = Clock::now() + kWaitLimit;
  while (!condition() && Clock::now() < end) {
    ::sched_yield();
  }
}

}  // namespace

Port::Port(base::Mapping control, base::Mapping doorbells, base::Mapping flags)
    : control_(std::move(control)), doorbells_(std::move(doorbells)), flags_(std::move(flags)) {
  has_wakeup_ = (read(GBA_REG_CAPS) & GBA_CAPS_WAKEUP) != 0;
}

std::uint64_t Port::read(std::uint64_t offset) const {
  return gba::MmioRegion(control_.bytes()).word<std::uint64_t>(offset).load();
}

std::uint32_t Port::read_half(std::uint64_t offset) const {
  return gba::MmioRegion(control_.bytes()).word<std::uint32_t>(offset).load();
}

void Port::write(std::uint64_t offset, std::uint64_t value) const {
  gba::MmioRegion(control_.bytes()).word<std::uint64_t>(offset).store(value);
}

void Port::command(unsigned opcode, const Group& group) const {
  write(GBA_REG_CMD, GBA_FIELD_PUT(GBA_CMD_OPCODE, opcode) | GBA_FIELD_PUT(GBA_CMD_GROUP, group.id) |
                         GBA_FIELD_PUT(GBA_CMD_KEY, group.key));
  require_equal(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, read(GBA_REG_CMD_STATUS)), GBA_CMD_OK,
                "the error of command " + std::to_string(opcode));
}

Group Port::make_group(unsigned members) const {
  command(GBA_CMD_ALLOC);
  const auto result = read(GBA_REG_CMD_RESULT);
  const Group group{.id = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, result)),
                    .key = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, result))};
  const auto base = GBA_GROUP_BASE(group.id);
  gba::MmioRegion(control_.bytes()).word<std::uint32_t>(base + GBA_GROUP_MEMBER_COUNT).store(members);
  write(base + GBA_GROUP_MEMBER_MASK, (std::uint64_t{1} << members) - 1);
  write(base + GBA_GROUP_CONTROL, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
  require_equal(read(base + GBA_GROUP_STATUS), GBA_STATUS_READY, "STATUS of a group that was enabled");
  return group;
}

void Port::join(const Group& group, std::uint64_t release_address) const {
  command(GBA_CMD_JOIN, group);
  write(GBA_GROUP_BASE(group.id) + GBA_GROUP_RELEASE_ADDR, release_address);
}

void Port::give_back(const Group& group) const {
  write(GBA_GROUP_BASE(group.id) + GBA_GROUP_CONTROL, 0);
  command(GBA_CMD_LEAVE, group);
  command(GBA_CMD_FREE, group);
}

Port::Flag Port::bar_flag(const Group& group) const {
  return gba::MmioRegion(flags_.bytes()).word<std::uint64_t>(std::uint64_t{GBA_FLAG_STRIDE} * group.id);
}

bool Port::device_sleeps() const {
  const auto wakeup = gba::MmioRegion(doorbells_.bytes()).word<std::uint32_t>(GBA_DOORBELL_WAKEUP);
  return has_wakeup_ && (wakeup.load() & GBA_WAKEUP_SLEEPING) != 0;
}

void Port::arrive(const Group& group, std::uint64_t sequence, bool notify) {
  const auto word = GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, sequence) | GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1) |
                    GBA_FIELD_PUT(GBA_ARRIVAL_NOTIFY, notify ? 1 : 0);
  gba::MmioRegion(doorbells_.bytes()).word<std::uint64_t>(GBA_DOORBELL_SLOT(group.id)).store(word);
  gba::ordering::doorbell_before_wakeup();  // uapi rule 14
  if (device_sleeps()) {
    write(GBA_REG_KICK, 1);
    ++kicks_;
  }
}

// Arrivals are not repeated here (uapi rule 18), so that one that is lost in the hypervisor shows.
void Port::await(const Group& group, const Flag& flag, std::uint64_t word) const {
  wait_for([&] { return flag.load() == word; });
  const auto seen = flag.load();  // before reading registers, which wakes the device
  if (seen == word) {
    return;
  }
  const auto base = GBA_GROUP_BASE(group.id);
  throw std::runtime_error("the flag is " + hex(seen) + ", not " + hex(word) + "; SEQUENCE " +
                           hex(read(base + GBA_GROUP_SEQUENCE)) + ", STATUS " + hex(read(base + GBA_GROUP_STATUS)) +
                           ", ERROR_CODE " + hex(read(base + GBA_GROUP_ERROR_CODE)) + ", FAULT " +
                           hex(read(GBA_REG_FAULT)) + ", kicks " + std::to_string(kicks_));
}

void Port::await_status(const Group& group, std::uint64_t status) const {
  const auto at = GBA_GROUP_BASE(group.id) + GBA_GROUP_STATUS;
  wait_for([&] { return read(at) == status; });
  require_equal(read(at), status, "STATUS");
}

void Port::run_barriers(const Group& group, const Flag& flag, unsigned rounds) {
  for (unsigned round = 1; round <= rounds; ++round) {
    arrive(group, round);
    await(group, flag, round);
  }
  require_equal(read(GBA_REG_FAULT), 0, "FAULT");
}

}  // namespace guest
