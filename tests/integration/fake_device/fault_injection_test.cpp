// SPDX-License-Identifier: Apache-2.0
// Faults injected through the debug region and from the command line, as clients see them.
#include <chrono>
#include <thread>

#include "tests/integration/fake_device/device_fixture.hpp"
#include "uapi/gba_debug.h"

namespace {

using raw::DeviceTest;
using raw::Port;

class DebugRegion : public DeviceTest {
 protected:
  explicit DebugRegion(const std::vector<std::string>& options = {"--debug-region"})
      : DeviceTest(options), owner_(path()), other_(path()) {}

  void set(std::uint64_t offset, std::uint64_t value) {
    ASSERT_EQ(owner_.write(offset, value, 8, GBA_REGION_DEBUG), 0);
  }
  std::uint64_t get(std::uint64_t offset) { return owner_.read(offset, 8, GBA_REGION_DEBUG); }
  /// Injects a fault and returns RESULT.
  std::uint64_t inject(unsigned kind) {
    set(GBA_DEBUG_INJECT, kind);
    return get(GBA_DEBUG_RESULT);
  }
  /// A group of both ports.
  Port::Group barrier(std::uint64_t sequence = 0) {
    const auto group = owner_.make_group(2, sequence);
    owner_.join(group, 0);
    other_.join(group, 1);
    return group;
  }
  void arrive_both(const Port::Group& group, std::uint64_t sequence) {
    owner_.arrive(group, 0, sequence);
    other_.arrive(group, 1, sequence);
  }
  static unsigned code(std::uint64_t word) { return static_cast<unsigned>(GBA_FIELD_GET(GBA_FLAG_CODE, word)); }

  Port owner_;
  Port other_;
};

vfio_user_region_info ask_region(Port& port, std::uint32_t argsz, raw::Reply& reply) {
  vfio_user_region_info info{};
  info.argsz = argsz;
  info.index = GBA_REGION_DEBUG;
  reply = port.client().call(VFIO_USER_DEVICE_GET_REGION_INFO, raw::bytes_of(info));
  return reply.as<vfio_user_region_info>();
}

TEST_F(DebugRegion, HasACapabilityForClientsWithRoomForIt) {
  EXPECT_NE(owner_.read(GBA_REG_CAPS) & GBA_CAPS_DEBUG, 0U);
  const vfio_user_device_info device{.argsz = sizeof device, .flags = 0, .num_regions = 0, .num_irqs = 0};
  const auto answer = owner_.client().call(VFIO_USER_DEVICE_GET_INFO, raw::bytes_of(device));
  EXPECT_EQ(answer.as<vfio_user_device_info>().num_regions, GBA_REGION_DEBUG + 1U);
  raw::Reply reply;
  const auto brief = ask_region(owner_, sizeof(vfio_user_region_info), reply);
  const std::uint32_t whole = sizeof(vfio_user_region_info) + sizeof(vfio_user_region_type);
  EXPECT_EQ(brief.argsz, whole);
  EXPECT_EQ(brief.flags, VFIO_USER_REGION_READABLE | VFIO_USER_REGION_WRITABLE);
  EXPECT_EQ(reply.payload.size(), sizeof brief);
  const auto full = ask_region(owner_, whole, reply);
  EXPECT_EQ(full.flags, VFIO_USER_REGION_READABLE | VFIO_USER_REGION_WRITABLE | VFIO_USER_REGION_CAPS);
  EXPECT_EQ(full.size, GBA_DEBUG_REGION_SIZE);
  const auto type = reply.as<vfio_user_region_type>(full.cap_offset);
  EXPECT_EQ(type.header.id, VFIO_USER_CAP_REGION_TYPE);
  EXPECT_EQ(type.header.next, 0U);
  EXPECT_EQ(type.type, GBA_DEBUG_REGION_TYPE);
  EXPECT_EQ(type.subtype, GBA_DEBUG_REGION_SUBTYPE);
  EXPECT_EQ(get(GBA_DEBUG_MAGIC), GBA_DEBUG_MAGIC_VALUE);
}

TEST_F(DebugRegion, KeepsItsArgumentsAndRefusesInvalidOnes) {
  set(GBA_DEBUG_GROUP, 5);
  EXPECT_EQ(get(GBA_DEBUG_GROUP), 5U);
  EXPECT_EQ(get(GBA_DEBUG_MEMBER), GBA_DEBUG_ANY);
  EXPECT_EQ(get(GBA_DEBUG_COUNT), 1U);
  EXPECT_EQ(other_.read(GBA_DEBUG_GROUP, 8, GBA_REGION_DEBUG), GBA_DEBUG_ANY) << "every port has its own registers";
  EXPECT_EQ(inject(0), GBA_DEBUG_REFUSED);
  EXPECT_EQ(inject(GBA_INJECT_END), GBA_DEBUG_REFUSED);
  EXPECT_EQ(inject(GBA_INJECT_LINK_DOWN), GBA_DEBUG_REFUSED) << "no port is given";
  set(GBA_DEBUG_GROUP, GBA_MAX_GROUPS);
  EXPECT_EQ(inject(GBA_INJECT_DROP_RELEASE), GBA_DEBUG_REFUSED);
  EXPECT_EQ(get(GBA_DEBUG_ARMED), 0U);
  EXPECT_EQ(owner_.read(GBA_DEBUG_GROUP, 4, GBA_REGION_DEBUG), 0U) << "the access has the wrong size";
  EXPECT_EQ(get(0x70), 0U) << "no register";
}

TEST_F(DebugRegion, LosesAReleaseUntilTheArrivalIsRepeatedOftenEnough) {
  const auto group = barrier();
  set(GBA_DEBUG_GROUP, group.id);
  set(GBA_DEBUG_MEMBER, 1);
  set(GBA_DEBUG_COUNT, 3);
  ASSERT_EQ(inject(GBA_INJECT_DROP_RELEASE), 0U);
  EXPECT_EQ(get(GBA_DEBUG_ARMED), 1U);
  arrive_both(group, 1);
  EXPECT_EQ(owner_.wait_flag(group, 0), 1U);
  for (int repeat = 0; repeat < 2; ++repeat) {
    other_.arrive(group, 1, 1);
    other_.read(GBA_REG_FAULT);
    EXPECT_EQ(other_.flag(group), 0U);
  }
  EXPECT_EQ(get(GBA_DEBUG_STRUCK), 3U);
  EXPECT_EQ(get(GBA_DEBUG_ARMED), 0U);
  other_.arrive(group, 1, 1);
  EXPECT_EQ(other_.wait_flag(group, 0), 1U);
}

TEST_F(DebugRegion, DelaysAReleaseAndItsInterruptWithIt) {
  const auto group = barrier();
  const auto event = raw::make_eventfd();
  const std::array<int, 1> events{event.get()};
  other_.arm(GBA_IRQ_MSIX, group.id, events);
  set(GBA_DEBUG_PORT, 1);
  set(GBA_DEBUG_TIME, 300'000'000);
  ASSERT_EQ(inject(GBA_INJECT_DELAY_RELEASE), 0U);
  const auto start = std::chrono::steady_clock::now();
  other_.arrive(group, 1, 1, /*notify=*/true);
  owner_.arrive(group, 0, 1);
  EXPECT_EQ(owner_.wait_flag(group, 0), 1U);
  EXPECT_EQ(raw::wait_event(event.get()), 1U);
  EXPECT_EQ(other_.flag(group), 1U) << "the flag comes first";
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(290));
}

TEST_F(DebugRegion, StallsAGroupAndNoOther) {
  const auto stalled = barrier();
  const auto going = barrier();
  set(GBA_DEBUG_GROUP, stalled.id);
  ASSERT_EQ(inject(GBA_INJECT_STALL_GROUP), 0U);
  arrive_both(stalled, 1);
  other_.write(GBA_DOORBELL_SLOT(stalled.id), UINT64_C(0x4000000100000001), 8, GBA_REGION_DOORBELLS);
  arrive_both(going, 1);
  EXPECT_EQ(owner_.wait_flag(going, 0), 1U);
  EXPECT_EQ(owner_.flag(stalled), 0U);
  set(GBA_DEBUG_CLEAR, 1);
  EXPECT_EQ(owner_.wait_flag(stalled, 0), 1U);
  EXPECT_EQ(other_.wait_flag(stalled, 0), 1U);
}

TEST_F(DebugRegion, FailsAStoreAsADmaFault) {
  const auto group = barrier();
  set(GBA_DEBUG_PORT, 1);
  ASSERT_EQ(inject(GBA_INJECT_DMA_FAULT), 0U);
  arrive_both(group, 1);
  EXPECT_EQ(code(other_.wait_flag(group, 0)), unsigned{GBA_ERROR_DMA_FAULT}) << "the error release comes through";
  EXPECT_EQ(other_.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_DMA));
  EXPECT_EQ(other_.read(GBA_REG_FAULT_ADDR), raw::kFlagIova + std::uint64_t{group.id} * GBA_FLAG_STRIDE);
}

TEST_F(DebugRegion, ForgesStaleAndFutureArrivals) {
  const auto group = barrier(7);
  set(GBA_DEBUG_GROUP, group.id);
  set(GBA_DEBUG_MEMBER, 1);
  set(GBA_DEBUG_VALUE, static_cast<std::uint64_t>(-1));
  ASSERT_EQ(inject(GBA_INJECT_FORGE_ARRIVAL), 0U);
  EXPECT_EQ(other_.wait_flag(group, 0), 7U) << "stale: answered with the last release";
  EXPECT_EQ(owner_.read(GBA_REG_COUNTER_STALE), 1U);
  set(GBA_DEBUG_VALUE, 2);
  ASSERT_EQ(inject(GBA_INJECT_FORGE_ARRIVAL), 0U);
  EXPECT_EQ(code(owner_.wait_flag(group, 0)), unsigned{GBA_ERROR_PROTOCOL});
  EXPECT_EQ(other_.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_PROTOCOL));
}

TEST_F(DebugRegion, SlowsACommandDown) {
  set(GBA_DEBUG_PORT, 1);
  set(GBA_DEBUG_TIME, 2'000'000'000);
  ASSERT_EQ(inject(GBA_INJECT_SLOW_COMMAND), 0U);
  EXPECT_EQ(owner_.command(GBA_CMD_ALLOC), unsigned{GBA_CMD_OK}) << "another port";
  const auto start = std::chrono::steady_clock::now();
  other_.write(GBA_REG_CMD, GBA_CMD_ALLOC);
  EXPECT_EQ(other_.read(GBA_REG_CMD_STATUS), GBA_FIELD_PUT(GBA_CMD_STATUS_BUSY, 1)) << "uapi rule 4";
  EXPECT_EQ(other_.result(), 0U);
  other_.write(GBA_REG_CMD, GBA_CMD_LEAVE);
  EXPECT_EQ(other_.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  while (GBA_FIELD_GET(GBA_CMD_STATUS_BUSY, other_.read(GBA_REG_CMD_STATUS)) != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1990));
  EXPECT_EQ(other_.read(GBA_REG_CMD_STATUS), 0U) << "the outcome of ALLOC";
  EXPECT_EQ(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, other_.result()), 1U);
}

// Uapi rule 34: what a port reads and writes, its error word and its interrupt go another way than its arrivals.
TEST_F(DebugRegion, LeavesAPortWithoutALinkItsRegistersAndCommands) {
  const auto group = barrier(4);
  const auto event = raw::make_eventfd();
  const std::array<int, 1> events{event.get()};
  other_.arm(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR, events);
  set(GBA_DEBUG_PORT, 1);
  ASSERT_EQ(inject(GBA_INJECT_LINK_DOWN), 0U);
  const auto word = other_.wait_flag(group, 0);
  EXPECT_EQ(code(word), unsigned{GBA_ERROR_LINK_DOWN});
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word), 4U);
  EXPECT_GE(raw::wait_event(event.get()), 1U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, other_.read(GBA_GROUP_BASE(group.id) + GBA_GROUP_ERROR_CODE)), 1U);
  EXPECT_EQ(other_.command(GBA_CMD_LEAVE, group.id), unsigned{GBA_CMD_OK});
  const auto mine = other_.make_group(1);
  other_.join(mine, 0);
  other_.arrive(mine, 0, 1);
  other_.kick();
  EXPECT_EQ(other_.read(GBA_REG_FAULT), 0U) << "an arrival is lost without a fault";
  EXPECT_EQ(other_.flag(mine), 0U);
  ASSERT_EQ(inject(GBA_INJECT_LINK_UP), 0U);
  other_.arrive(mine, 0, 1);
  EXPECT_EQ(other_.wait_flag(mine, 0), 1U) << "the group was enabled when the link was down already";
}

TEST_F(DebugRegion, TakesALinkDownAndUp) {
  const auto group = barrier();
  const auto event = raw::make_eventfd();
  const std::array<int, 1> events{event.get()};
  other_.arm(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR, events);
  set(GBA_DEBUG_PORT, 1);
  ASSERT_EQ(inject(GBA_INJECT_LINK_DOWN), 0U);
  EXPECT_EQ(code(owner_.wait_flag(group, 0)), unsigned{GBA_ERROR_LINK_DOWN});
  EXPECT_EQ(other_.read(GBA_REG_DEV_STATUS), GBA_DEV_STATUS_READY);
  EXPECT_GE(raw::wait_event(event.get()), 1U);
  ASSERT_EQ(inject(GBA_INJECT_LINK_UP), 0U);
  EXPECT_EQ(other_.read(GBA_REG_DEV_STATUS), GBA_DEV_STATUS_READY | GBA_DEV_STATUS_LINK_UP);
}

// Uapi rule 36.
TEST_F(DebugRegion, PullsAFunctionOutAndKeepsItsSocket) {
  const auto group = barrier();
  set(GBA_DEBUG_PORT, 1);
  ASSERT_EQ(inject(GBA_INJECT_REMOVE), 0U);
  EXPECT_EQ(code(owner_.wait_flag(group, 0)), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(other_.read(GBA_REG_MAGIC, 4), 0xffffffffU);
  EXPECT_EQ(other_.read(0, 4, GBA_REGION_CONFIG), 0xffffffffU);
  EXPECT_EQ(other_.bar_flags().word(0), UINT64_MAX) << "mapped memory too";
  EXPECT_EQ(other_.doorbells().word(GBA_DOORBELL_SLOT(group.id)), UINT64_MAX);
  EXPECT_EQ(other_.write(GBA_REG_CMD, GBA_CMD_ALLOC), 0) << "dropped";
  other_.arrive(group, 1, 1);
  other_.kick();
  EXPECT_EQ(other_.write(0x04, 0x6, 2, GBA_REGION_CONFIG), 0);
  EXPECT_EQ(other_.client().call(VFIO_USER_DEVICE_RESET, {}).error(), 0);
  EXPECT_EQ(other_.read(GBA_REG_MAGIC, 4), 0xffffffffU) << "nothing brings it back";
  EXPECT_EQ(owner_.read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
  EXPECT_EQ(owner_.read(GBA_REG_COUNTER_REJECTED), 0U);
  Port next(path());
  EXPECT_EQ(next.read(GBA_REG_PORT_ID, 4), 2U);
}

TEST_F(DebugRegion, PullsOutAllConnectedFunctions) {
  ASSERT_EQ(owner_.write(GBA_DEBUG_INJECT, GBA_INJECT_REMOVE, 8, GBA_REGION_DEBUG), 0);
  EXPECT_EQ(owner_.read(GBA_REG_MAGIC, 4), 0xffffffffU);
  EXPECT_EQ(other_.read(GBA_REG_MAGIC, 4), 0xffffffffU);
}

// Uapi rules 23 and 35.
TEST_F(DebugRegion, ResetsTheDeviceAndRaisesAFatalError) {
  const auto group = barrier();
  ASSERT_EQ(inject(GBA_INJECT_RESET_DEVICE), 0U);
  EXPECT_EQ(code(owner_.wait_flag(group, 0)), unsigned{GBA_ERROR_RESET});
  ASSERT_EQ(inject(GBA_INJECT_FATAL), 0U);
  EXPECT_NE(other_.read(GBA_REG_DEV_STATUS) & GBA_DEV_STATUS_FATAL, 0U);
}

class WithoutDebugRegion : public DeviceTest {};

TEST_F(WithoutDebugRegion, RegionIsMissing) {
  Port port(path());
  EXPECT_EQ(port.read(GBA_REG_CAPS) & GBA_CAPS_DEBUG, 0U);
  raw::Reply reply;
  ask_region(port, 4096, reply);
  EXPECT_EQ(reply.error(), EINVAL);
  EXPECT_EQ(port.write(GBA_DEBUG_INJECT, GBA_INJECT_REMOVE, 8, GBA_REGION_DEBUG), EINVAL);
}

class Latency : public DebugRegion {
 protected:
  Latency() : DebugRegion({"--fault", "latency:time=2ms,sigma=100us"}) {}
};

TEST_F(Latency, FromTheCommandLineIsAddedToEveryRelease) {
  const auto group = barrier();
  const auto start = std::chrono::steady_clock::now();
  constexpr std::uint64_t kRounds = 20;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    arrive_both(group, round);
    EXPECT_EQ(owner_.wait_flag(group, round - 1), round);
    EXPECT_EQ(other_.wait_flag(group, round - 1), round);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
  EXPECT_EQ(owner_.read(GBA_REG_CAPS) & GBA_CAPS_DEBUG, 0U) << "clients cannot inject";
}

class Scheduled : public DebugRegion {
 protected:
  Scheduled() : DebugRegion({"--fault", "start-sequence:value=0xfffffffe", "--fault", "link-down:port=1,at=500ms"}) {}
};

TEST_F(Scheduled, FaultsFromTheCommandLineStrikeAtTheirTime) {
  ASSERT_EQ(owner_.command(GBA_CMD_ALLOC), unsigned{GBA_CMD_OK});
  const auto group = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, owner_.result()));
  EXPECT_EQ(owner_.read(GBA_GROUP_BASE(group) + GBA_GROUP_SEQUENCE), 0xfffffffeU);
  for (int tries = 0; tries < 400 && (other_.read(GBA_REG_DEV_STATUS) & GBA_DEV_STATUS_LINK_UP) != 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(other_.read(GBA_REG_DEV_STATUS), GBA_DEV_STATUS_READY);
}

}  // namespace
