// SPDX-License-Identifier: Apache-2.0
// Small parts of the server: negotiation, deadlines, config space, interrupts, the pacer, ports.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "fake_device/commands.hpp"
#include "fake_device/config_space.hpp"
#include "fake_device/interrupts.hpp"
#include "fake_device/server_parts.hpp"
#include "tests/unit/fake_device/given.hpp"
#include "uapi/vfio_user.h"

namespace {

using fake_device::ConfigSpace;
using fake_device::Deadlines;
using fake_device::EventSignaller;
using fake_device::FdAllowance;
using fake_device::InterruptQueue;
using fake_device::IrqTable;
using fake_device::kMicrosecond;
using fake_device::kNever;
using fake_device::kSecond;
using fake_device::kSilenceLimit;
using fake_device::Pacer;
using fake_device::parse_version;
using fake_device::PortPool;
using fake_device::Rest;
using fake_device::SilentClients;
using fake_device::Time;

std::vector<std::byte> version_payload(const std::string& json) {
  std::vector<std::byte> payload(4 + json.size() + 1);
  std::memcpy(payload.data() + 4, json.c_str(), json.size() + 1);
  return payload;
}

TEST(Negotiation, UsesTheSmallerOfTwoLimits) {
  const auto small = parse_version(version_payload(R"({"capabilities":{"max_data_xfer_size":4096}})"));
  const auto large = parse_version(version_payload(R"({"capabilities":{"max_data_xfer_size":18446744073709551615}})"));
  ASSERT_TRUE(small && large);
  EXPECT_EQ(small->max_transfer, 4096U);
  EXPECT_EQ(large->max_transfer, fake_device::kMaxTransfer);
}

TEST(Negotiation, HasTheSpecifiedDefaults) {
  const auto limits = parse_version(version_payload("{}"));
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->max_fds, 1U);
  EXPECT_FALSE(limits->write_multiple);
}

TEST(Negotiation, IgnoresUnknownCapabilities) {
  EXPECT_TRUE(parse_version(version_payload(R"({"capabilities":{"teleport":{"range":[1,2]}},"more":null})")));
}

TEST(Negotiation, SurvivesDeepNesting) {
  EXPECT_FALSE(parse_version(version_payload(std::string(60000, '['))));
}

TEST(Negotiation, AnswersWithinTheLongestReplyOfAKnownClient) {
  EXPECT_LE(fake_device::version_reply({.write_multiple = true}).size() + sizeof(vfio_user_header),
            VFIO_USER_MAX_VERSION_REPLY);
}

TEST(FdAllowance, TakesSomeAtOnceAndTheRestWithTime) {
  FdAllowance allowance;
  const Time start = 5 * kSecond;
  allowance.take(FdAllowance::kAtOnce, start);
  EXPECT_LE(allowance.resumes(), start);
  allowance.take(16, start);
  const Time resumes = start + (FdAllowance::kAtOnce + 16) * FdAllowance::kTimeOfOne;
  EXPECT_EQ(allowance.resumes(), resumes);
  allowance.take(16, resumes);
  EXPECT_EQ(allowance.resumes(), resumes) << "those of before count no more";
}

TEST(Deadlines, IgnoreClientsWithoutOne) {
  Deadlines deadlines;
  EXPECT_EQ(deadlines.next(), kNever);
  deadlines.set(1, 30);
  deadlines.set(2, 20);
  deadlines.set(3, kNever);
  EXPECT_EQ(deadlines.next(), 20U);
  EXPECT_EQ(deadlines.first(), 2);
  deadlines.set(2, 40);
  EXPECT_EQ(deadlines.first(), 1);
  deadlines.set(1, kNever);
  deadlines.set(2, 40);
  EXPECT_EQ(deadlines.next(), 40U);
  deadlines.set(2, kNever);
  EXPECT_EQ(deadlines.next(), kNever);
}

TEST(SilentClients, HaveATimeLimitAndAShorterOneIfAnotherClientWaits) {
  SilentClients silent(2);
  EXPECT_EQ(silent.deadline(/*wanted=*/true), kNever);
  silent.add(5, 100);
  EXPECT_EQ(silent.deadline(/*wanted=*/true), 100 + kSilenceLimit) << "another place is free";
  silent.add(6, 200);
  EXPECT_EQ(silent.deadline(/*wanted=*/false), 100 + kSilenceLimit);
  EXPECT_EQ(silent.deadline(/*wanted=*/true), 100 + SilentClients::kSilenceLimitWhenFull);
}

TEST(SilentClients, MakeRoomForOthersOldestFirst) {
  SilentClients silent(2);
  silent.add(5, 100);
  EXPECT_TRUE(silent.room(100));
  silent.add(6, 200);
  EXPECT_FALSE(silent.room(99 + SilentClients::kSilenceLimitWhenFull));
  EXPECT_TRUE(silent.room(100 + SilentClients::kSilenceLimitWhenFull));
  EXPECT_EQ(silent.oldest(), 5);
  silent.remove(5);
  silent.remove(5);
  silent.remove(7);
  EXPECT_EQ(silent.oldest(), 6);
  EXPECT_TRUE(silent.room(200));
}

class Config : public ::testing::Test {
 protected:
  std::uint64_t read(std::size_t offset, std::size_t size) {
    std::uint64_t value = 0;
    config_.read(offset, std::as_writable_bytes(std::span(&value, 1)).first(size));
    return value;
  }
  void write(std::size_t offset, std::uint64_t value, std::size_t size) {
    config_.write(offset, std::as_bytes(std::span(&value, 1)).first(size));
  }
  ConfigSpace config_{GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID, GBA_MSIX_VECTORS};
};

TEST_F(Config, StartsWithMemoryOnAndBusMasterOff) {
  EXPECT_TRUE(config_.memory_enabled());
  EXPECT_FALSE(config_.bus_master());
  write(PCI_COMMAND, PCI_COMMAND_MASTER, 2);
  EXPECT_FALSE(config_.memory_enabled());
  EXPECT_TRUE(config_.bus_master());
}

TEST_F(Config, KeepsReadOnlyAndReservedBits) {
  std::array<std::byte, GBA_CONFIG_SIZE> ones{};
  ones.fill(std::byte{0xff});
  config_.write(0, ones);
  EXPECT_EQ(read(PCI_VENDOR_ID, 2), GBA_PCI_VENDOR_ID);
  EXPECT_EQ(read(PCI_COMMAND, 2), unsigned{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE});
  EXPECT_EQ(read(PCI_HEADER_TYPE, 1), 0U);
  EXPECT_EQ(read(PCI_ROM_ADDRESS, 4), 0U) << "there is no ROM";
  EXPECT_EQ(read(PCI_INTERRUPT_PIN, 1), 0U);
  EXPECT_EQ(read(0x42, 2), 0xc000U | (GBA_MSIX_VECTORS - 1));
  EXPECT_EQ(read(0x100, 4), 0U) << "no extended capability";
}

std::uint64_t count_of(int eventfd) {
  std::uint64_t count = 0;
  return ::read(eventfd, &count, sizeof count) == static_cast<ssize_t>(sizeof count) ? count : 0;
}

constexpr auto kArm = VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER;

TEST(Interrupts, OfAnUnarmedVectorGoNowhere) {
  EventSignaller signaller;
  InterruptQueue queue(signaller);
  IrqTable irqs(GBA_MSIX_VECTORS, queue);
  irqs.raise(GBA_IRQ_MSIX, 0);
  irqs.raise(GBA_IRQ_ERR, 0);
}

TEST(Interrupts, DoNotWaitForAClientThatFilledItsEventfd) {
  EventSignaller signaller;
  InterruptQueue queue(signaller);
  IrqTable irqs(GBA_MSIX_VECTORS, queue);
  const base::UniqueFd mine(::eventfd(0, EFD_CLOEXEC));
  std::vector<fake_device::Given> fds;
  fds.push_back(fake_device_test::again(mine));
  ASSERT_EQ(irqs.set(GBA_IRQ_MSIX, kArm, 4, 1, {}, std::move(fds)), 0);
  const std::uint64_t full = std::numeric_limits<std::uint64_t>::max() - 1;
  ASSERT_EQ(::write(mine.get(), &full, sizeof full), static_cast<ssize_t>(sizeof full));
  ASSERT_EQ(::fcntl(mine.get(), F_SETFL, ::fcntl(mine.get(), F_GETFL) & ~O_NONBLOCK), 0);
  irqs.raise(GBA_IRQ_MSIX, 4);
  EXPECT_GE(count_of(mine.get()), full);
}

TEST(Interrupts, AreRaisedOnceWhenUnmasked) {
  EventSignaller signaller;
  InterruptQueue queue(signaller);
  IrqTable irqs(GBA_MSIX_VECTORS, queue);
  const base::UniqueFd mine(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::vector<fake_device::Given> fds;
  fds.push_back(fake_device_test::again(mine));
  ASSERT_EQ(irqs.set(GBA_IRQ_MSIX, kArm, 0, 1, {}, std::move(fds)), 0);
  ASSERT_EQ(irqs.set(GBA_IRQ_MSIX, VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_MASK, 0, 1, {}, {}), 0);
  irqs.raise(GBA_IRQ_MSIX, 0);
  irqs.raise(GBA_IRQ_MSIX, 0);
  EXPECT_EQ(count_of(mine.get()), 0U);
  const auto unmask = [&] {
    ASSERT_EQ(irqs.set(GBA_IRQ_MSIX, VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_UNMASK, 0, 1, {}, {}), 0);
  };
  unmask();
  EXPECT_EQ(count_of(mine.get()), 1U);
  unmask();
  EXPECT_EQ(count_of(mine.get()), 0U);
}

TEST(Pacer, SleepsAtOnceWithoutMembers) {
  Pacer pacer(200 * kMicrosecond, 8);
  pacer.worked(1000);
  EXPECT_EQ(pacer.rest(1000, 0), Rest::kSleep);
}

TEST(Pacer, SpinsThenYieldsThenSleeps) {
  Pacer pacer(200 * kMicrosecond, 8);
  pacer.worked(1000);
  EXPECT_EQ(pacer.rest(1000, 2), Rest::kSpin);
  EXPECT_EQ(pacer.rest(1000 + 99 * kMicrosecond, 2), Rest::kSpin);
  EXPECT_EQ(pacer.rest(1000 + 150 * kMicrosecond, 2), Rest::kYield);
  unsigned yields = 0;
  while (pacer.rest(1000 + 300 * kMicrosecond, 2) == Rest::kYield && yields < 1000) {
    ++yields;
  }
  EXPECT_GT(yields, 8U) << "other threads had no chance to arrive";
  EXPECT_LT(yields, 1000U);
  pacer.worked(1000 + 301 * kMicrosecond);
  EXPECT_EQ(pacer.rest(1000 + 301 * kMicrosecond, 2), Rest::kSpin);
}

TEST(Pacer, NeverSpinsWithMoreMembersThanProcessorsLeft) {
  Pacer pacer(200 * kMicrosecond, 2);
  pacer.worked(1000);
  EXPECT_EQ(pacer.rest(1000, 1), Rest::kSpin);
  EXPECT_EQ(pacer.rest(1000, 2), Rest::kYield);
}

TEST(PortPool, GivesTheLowestFreePort) {
  const auto any = [](unsigned) { return true; };
  PortPool pool(10, 3);
  EXPECT_EQ(pool.take(any), 10U);
  EXPECT_EQ(pool.take(any), 11U);
  EXPECT_EQ(pool.take(any), 12U);
  EXPECT_EQ(pool.take(any), std::nullopt);
  pool.release(11);
  pool.release(10);
  EXPECT_EQ(pool.take(any), 10U);
}

TEST(PortPool, GivesAnotherPortIfNoneIsGood) {
  const auto good = [](unsigned port) { return port == 12; };
  PortPool pool(10, 3);
  EXPECT_EQ(pool.take(good), 12U);
  EXPECT_EQ(pool.take(good), 10U);
  EXPECT_EQ(pool.take(good), 11U);
  EXPECT_EQ(pool.take(good), std::nullopt);
}

}  // namespace
