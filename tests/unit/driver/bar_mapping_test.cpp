// SPDX-License-Identifier: Apache-2.0
// Mapped device memory that becomes inaccessible.
#include "driver/bar_mapping.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/registers.hpp"
#include "tests/unit/driver/end_of_child.hpp"
#include "tests/unit/driver/fake_backend.hpp"

namespace gba::test {
namespace {

class BarMappingTest : public testing::Test {
 protected:
  BarMappingTest() {
    state_->control_file = base::UniqueFd(::memfd_create("control", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(state_->control_file.get(), GBA_BAR0_SIZE), 0);
    state_->regions[GBA_REGION_CONTROL].mappable = true;
  }
  /// Truncates the file behind the region: accesses raise SIGBUS, as after a device is unplugged.
  void pull_out() { ASSERT_EQ(::ftruncate(state_->control_file.get(), 0), 0); }

  std::shared_ptr<FakeState> state_ = std::make_shared<FakeState>();
  FakeBackend backend_{state_};
};

TEST_F(BarMappingTest, ReportsALostDeviceInsteadOfCrashingWhenItIsPulledOut) {
  auto control = Registers::open(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(control);
  ASSERT_TRUE(control->write<std::uint64_t>(GBA_REG_KICK, 1));
  EXPECT_FALSE(backend_.lost());
  pull_out();
  EXPECT_EQ(control->write<std::uint64_t>(GBA_REG_KICK, 1).error().code, std::errc::no_such_device_or_address);
  EXPECT_TRUE(backend_.lost());
  EXPECT_EQ(control->read<std::uint64_t>(GBA_REG_CAPS).error().code, std::errc::no_such_device_or_address);
}

TEST_F(BarMappingTest, LeavesOtherBusErrorsToThePreviousHandler) {
  const auto own = BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(own);
  const base::UniqueFd file(::memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  auto other = map_shared(file.get(), 0, 4096, "other memory");
  ASSERT_TRUE(other);
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // they install handlers of their own
  EXPECT_NE(end_of_child([&] { *reinterpret_cast<volatile char*>(other->bytes().data()) = 1; }), 0);
#else
  EXPECT_EQ(end_of_child([&] { *reinterpret_cast<volatile char*>(other->bytes().data()) = 1; }), SIGBUS);
#endif
  EXPECT_FALSE(backend_.lost());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(BarMappingTest, LetsABusErrorThatIsSentAsASignalEndTheProcess) {
  const auto own = BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(own);
  EXPECT_EQ(end_of_child([] { ::kill(::getpid(), SIGBUS); }), SIGBUS);
  EXPECT_EQ(end_of_child([] { ::raise(SIGBUS); }), SIGBUS);
}
#endif

using Action = void (*)(int, siginfo_t*, void*);

Action handler_of_bus_errors() {
  struct sigaction now {};
  ::sigaction(SIGBUS, nullptr, &now);
  return now.sa_sigaction;
}

TEST_F(BarMappingTest, HasAHandlerOfBusErrorsWhileItExists) {
  const Action before = handler_of_bus_errors();
  for (int i = 0; i < 2; ++i) {
    auto first = BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
    auto second = BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
    ASSERT_TRUE(first && second);
    EXPECT_NE(handler_of_bus_errors(), before);
    *first = BarMapping();
    EXPECT_NE(handler_of_bus_errors(), before);
    *second = BarMapping();
    EXPECT_EQ(handler_of_bus_errors(), before);
  }
}

TEST_F(BarMappingTest, LeavesAHandlerThatWasInstalledLater) {
  struct sigaction before {};
  struct sigaction later {};
  later.sa_handler = SIG_IGN;
  {
    const auto mapping = BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
    ASSERT_TRUE(mapping);
    ASSERT_EQ(::sigaction(SIGBUS, &later, &before), 0);
  }
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGBUS, &before, &after), 0);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
  // That handler could hand on to the library's, which is the first again now.
  EXPECT_TRUE(BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE));
}

TEST_F(BarMappingTest, BecomesOrdinaryMemoryInAForkedChild) {
  auto control = BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(control);
  auto* const word = reinterpret_cast<volatile std::uint64_t*>(control->bytes().data());
  *word = 1;
  EXPECT_EQ(end_of_child([&] {
              const bool fresh = *word == 0 && backend_.loss() == Loss::kForked;
              *word = 2;
              ::_exit(fresh && backend_.lost() ? 7 : 1);
            }),
            7);
  EXPECT_EQ(*word, 1U) << "the child's store did not reach the device";
  EXPECT_FALSE(backend_.lost());
}

TEST_F(BarMappingTest, IsRefusedIfTheRegionIsSmallerThanReported) {
  state_->regions[GBA_REGION_CONTROL].size = GBA_BAR0_SIZE / 2;
  EXPECT_EQ(BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE).error().code, std::errc::protocol_error);
}

TEST_F(BarMappingTest, FreesItsEntryInTheTableOfMappings) {
  for (int i = 0; i < 2000; ++i) {
    auto mapping = BarMapping::make(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
    ASSERT_TRUE(mapping) << mapping.error().text;
    BarMapping moved = *std::move(mapping);
    ASSERT_TRUE(moved);
  }
}

}  // namespace
}  // namespace gba::test
