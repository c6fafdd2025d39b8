// SPDX-License-Identifier: Apache-2.0
// Each way to lose a device, and each failure that no flag reports: a waiter that is already blocked finds it, its
// errno tells it from all others, and the device can be opened again.
#include "driver/backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <ostream>
#include <set>
#include <thread>

#include "driver/group.hpp"
#include "tests/unit/driver/device_fixture.hpp"

namespace gba::test {
namespace {

using testing::ContainsRegex;

struct Cause {
  const char* name;
  int error;
  const char* text;
  std::function<void(FakeState&)> happen;
  std::function<void(FakeState&)> mend = [](FakeState&) {};
  bool mapped = false;  // the registers are mapped, not read by messages
  friend void PrintTo(const Cause& cause, std::ostream* out) { *out << cause.name; }
};

/// Fires loss_event() with the reason `loss`.
std::function<void(FakeState&)> lose(Loss loss) {
  return [loss](FakeState& state) {
    state.loss_seen = loss;
    state.lose();
  };
}

void set_register(FakeState& state, std::uint64_t offset, std::uint64_t value) {
  const std::lock_guard lock(state.mutex);
  state.control[offset] = value;
}

/// Maps the registers from a file, which a test can truncate.
void map_registers(FakeState& state) {
  state.control_file = base::UniqueFd(::memfd_create("registers", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(state.control_file.get(), GBA_BAR0_SIZE), 0);
  for (const auto& [offset, value] : state.control) {
    ASSERT_EQ(::pwrite(state.control_file.get(), &value, sizeof(value), static_cast<off_t>(offset)), sizeof(value));
  }
  state.regions[GBA_REGION_CONTROL].mappable = true;
}

constexpr std::uint64_t kWell = GBA_DEV_STATUS_READY | GBA_DEV_STATUS_LINK_UP;
constexpr std::uint32_t kFailing = 3;  // the group that fails
constexpr std::uint32_t kPort = 5;

const std::vector<Cause> kCauses{
    {"PciError", EREMOTEIO, "PCI error that cannot be corrected", lose(Loss::kPciError)},
    {"WantedByTheKernel", ESHUTDOWN, "the kernel wants it back", lose(Loss::kWanted)},
    {"ConnectionClosed", ECONNABORTED, "process has ended or was killed", lose(Loss::kClosed)},
    {"Silent", EHOSTDOWN, "does not answer", lose(Loss::kSilent)},
    {"Garbled", EBADMSG, "breaks the protocol", lose(Loss::kGarbled)},
    {"Removed", ENODEV, "reads all ones",
     [](FakeState& state) {
       const std::lock_guard lock(state.mutex);
       state.removed = true;
     }},
    {"Unmapped", ENXIO, "SIGBUS", [](FakeState& state) { ASSERT_EQ(::ftruncate(state.control_file.get(), 0), 0); },
     [](FakeState&) {}, true},
    {"Fatal", EIO, "fatal error .FATAL.*gba reset",
     [](FakeState& state) { set_register(state, GBA_REG_DEV_STATUS, GBA_DEV_STATUS_FATAL); },
     [](FakeState& state) { set_register(state, GBA_REG_DEV_STATUS, kWell); }},
    {"LinkDown", ENETDOWN, "the link of this port, 5, is down",
     [](FakeState& state) { set_register(state, GBA_REG_DEV_STATUS, GBA_DEV_STATUS_READY); },
     [](FakeState& state) { set_register(state, GBA_REG_DEV_STATUS, kWell); }},
    {"PortReset", ENETRESET, "not member 7 any more: another process reset it",
     [](FakeState& state) {
       set_register(state, GBA_GROUP_BASE(kFailing) + GBA_GROUP_MEMBER_PORT + 8, ~std::uint64_t{0});
     }},
    {"LostRelease", ECOMM, "was released, but the release is lost",
     [](FakeState& state) { set_register(state, GBA_GROUP_BASE(kFailing) + GBA_GROUP_SEQUENCE, 1); }},
};

class LossTest : public DeviceFixture, public testing::WithParamInterface<Cause> {};

TEST_P(LossTest, IsFoundByABlockedWaiterAndTheDeviceCanBeReopened) {
  const std::uint64_t with_ports = GBA_FIELD_PUT(GBA_VERSION_MAJOR_FIELD, GBA_VERSION_MAJOR) | 1;
  const std::uint64_t place = std::uint64_t{kPort} << 48;  // the port of member 7
  const auto make = [&] {
    state_ = std::make_shared<FakeState>();
    state_->control[GBA_REG_VERSION] = with_ports;
    state_->control[GBA_GROUP_BASE(kFailing) + GBA_GROUP_MEMBER_PORT + 8] = place;
    if (GetParam().mapped) {
      map_registers(*state_);
    }
    open();
  };
  make();
  Group group(join());
  std::thread device([&] {
    while (state_->doorbell(kGroup).load() == 0) {
      std::this_thread::yield();
    }
    GetParam().happen(*state_);
  });
  // The failure must come long before the deadline: a caller that waits without one must see it too.
  const std::errc failure = group.wait(1, Deadline::after(std::chrono::seconds{50}));
  device.join();
  EXPECT_EQ(static_cast<int>(failure), GetParam().error);
  const Error error = group.describe(failure, 1);
  EXPECT_EQ(static_cast<int>(error.code), GetParam().error);
  EXPECT_THAT(error.text, ContainsRegex(GetParam().text));
  EXPECT_NE(group.test(2), std::errc{}) << "must not crash";
  group.arrive(2);
  (void)group.leave();
  GetParam().mend(*state_);
  EXPECT_TRUE(open_fake(std::make_shared<FakeState>()));
}

INSTANTIATE_TEST_SUITE_P(All, LossTest, testing::ValuesIn(kCauses),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Losses, HaveErrnosOfTheirOwn) {
  // The rest of gba.h's list, which other tests cover: errors in flags, a forked child, the caller's own limit.
  std::multiset<int> all{ECONNRESET, EOWNERDEAD, EPIPE, ETIME, EFAULT, EPROTO, ECHILD, ETIMEDOUT, EAGAIN};
  for (const Cause& cause : kCauses) {
    all.insert(cause.error);
  }
  for (const int error : all) {
    EXPECT_EQ(all.count(error), 1U) << error;
  }
  EXPECT_EQ(static_cast<int>(code_of(Loss::kForked)), ECHILD);
}

}  // namespace
}  // namespace gba::test
