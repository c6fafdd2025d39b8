// SPDX-License-Identifier: Apache-2.0
// Every failure of a device that is a process: a blocked member gets an errno and a message for it and ends cleanly,
// and the device can be reopened. Failures that only the kernel's VFIO can show are in tests/unit/driver (loss_test,
// vfio_device_test, bar_mapping_test).
#include <functional>
#include <ostream>
#include <set>
#include <thread>

#include "tests/integration/driver/barrier_fixture.hpp"
#include "tools/raw_client/raw_client.hpp"
#include "uapi/gba_debug.h"

namespace driver_test {
namespace {

using testing::ContainsRegex;

constexpr std::uint64_t kSecond = 1'000'000'000;

/// A base class, so that its folder exists before the device starts.
class AdminSocket {
 protected:
  [[nodiscard]] std::string admin() const { return folder_.file("admin.sock"); }
  [[nodiscard]] std::vector<std::string> options() const { return {"--debug-region", "--admin-socket", admin()}; }

 private:
  test_support::TempDir folder_;
};

class FailureTest : protected AdminSocket, public BarrierTest {
 public:
  FailureTest() : BarrierTest(options()) {}

  void restart() {
    start();
    injector_ = std::make_unique<raw::Port>(path());
  }
  void kill() { kill_device(); }
  void signal(int number) { process().signal(number); }
  void kill_member(std::size_t index) { member(index).signal(SIGKILL); }
  void free_group() { EXPECT_EQ(gba_group_free(owner_.get(), &handle_), 0) << gba_error_text(); }

  /// Injects a fault through the debug region; `arguments` are pairs of register and value.
  void inject(std::uint64_t kind, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& arguments = {}) {
    for (const auto& [at, value] : arguments) {
      ASSERT_EQ(injector_->write(at, value, 8, GBA_REGION_DEBUG), 0);
    }
    ASSERT_EQ(injector_->write(GBA_DEBUG_INJECT, kind, 8, GBA_REGION_DEBUG), 0);
    ASSERT_EQ(injector_->read(GBA_DEBUG_RESULT, 8, GBA_REGION_DEBUG), 0U);
  }
  std::uint64_t port_of_member(std::uint32_t index) {
    gba_group_status status{};
    EXPECT_EQ(gba_group_get_status(owner_.get(), handle_.group, &status), 0) << gba_error_text();
    return status.ports[index];
  }
  /// Resets the device through its privileged port.
  void reset() {
    const gba_open_options options{.size = sizeof(options), .flags = GBA_OPEN_FATAL};
    gba_device* device = nullptr;
    ASSERT_EQ(gba_open_with(admin().c_str(), &options, &device), 0) << gba_error_text();
    const DevicePointer privileged(device);
    EXPECT_EQ(gba_device_reset(device), 0) << gba_error_text();
  }
  /// Removes the faults that have not struck yet.
  void clear() { ASSERT_EQ(injector_->write(GBA_DEBUG_CLEAR, 1, 8, GBA_REGION_DEBUG), 0); }

  void expect_to_work_when_reopened() {
    owner_.reset();
    const auto device = open();
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(gba_device_check(device.get()), 0) << gba_error_text();
    const auto handle = alloc(device.get(), 1);
    ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
    const auto group = join(device.get(), handle, 0);
    for (std::uint64_t k = 1; k <= 10; ++k) {
      gba_group_arrive(group.get(), k);
      ASSERT_EQ(gba_group_wait(group.get(), k, 30 * kSecond), 0) << gba_error_text();
    }
  }

 private:
  std::unique_ptr<raw::Port> injector_ = std::make_unique<raw::Port>(path());
};

/// Strikes while member 0 waits for member 1 or, if `running`, at any moment of their barriers.
struct Failure {
  const char* name;
  int error;
  const char* text;
  std::function<void(FailureTest&)> happen;
  std::function<void(FailureTest&)> repair = [](FailureTest&) {};
  bool running = false;
  friend void PrintTo(const Failure& failure, std::ostream* out) { *out << failure.name; }
};

const std::vector<Failure> kFailures{
    {"ProcessKilled", ECONNABORTED, "is lost: its process has ended or was killed", [](auto& t) { t.kill(); },
     [](auto& t) { t.restart(); }},
    {"ProcessStopped", EHOSTDOWN, "does not answer .is its process stopped", [](auto& t) { t.signal(SIGSTOP); },
     [](auto& t) { t.signal(SIGCONT); }},
    {"Removed", ENODEV, "is lost: it reads all ones: it was pulled out",
     [](auto& t) {
       t.inject(GBA_INJECT_REMOVE, {{GBA_DEBUG_PORT, t.port_of_member(0)}});
     }},
    {"Fatal", EIO, "fatal error .FATAL.*until it is reset: gba reset --yes",
     [](auto& t) { t.inject(GBA_INJECT_FATAL); }, [](auto& t) { t.reset(); }},
    {"LinkDown", ENETDOWN, "member's link is down .member 0",
     [](auto& t) {
       t.inject(GBA_INJECT_LINK_DOWN, {{GBA_DEBUG_PORT, t.port_of_member(0)}});
     },
     [](auto& t) { t.inject(GBA_INJECT_LINK_UP); }},
    {"ResetByAnotherClient", ECONNRESET, "the group or the device was reset", [](auto& t) { t.reset(); }},
    {"GroupFreedByItsOwner", EOWNERDEAD, "the group was taken back: its owner freed it",
     [](auto& t) { t.free_group(); }},
    {"MemberKilled", EPIPE, "a member left the group, or its process ended .member 1",
     [](auto& t) { t.kill_member(1); }},
    {"OutOfOrder", EPROTO, "a member arrived out of order .member 1",
     [](auto& t) {
       t.inject(GBA_INJECT_FORGE_ARRIVAL, {{GBA_DEBUG_GROUP, 0}, {GBA_DEBUG_MEMBER, 1}, {GBA_DEBUG_VALUE, 2}});
     }},
    {"FlagNotWritable", EFAULT, "the device could not write a release flag",
     [](auto& t) {
       t.inject(GBA_INJECT_DMA_FAULT, {{GBA_DEBUG_GROUP, 0}, {GBA_DEBUG_MEMBER, 0}});
     },
     [](FailureTest&) {}, true},
    {"LostRelease", ECOMM, "was released, but the release is lost",
     [](auto& t) {
       t.inject(GBA_INJECT_DROP_RELEASE,
                {{GBA_DEBUG_GROUP, 0}, {GBA_DEBUG_MEMBER, 0}, {GBA_DEBUG_COUNT, GBA_DEBUG_ANY}});
     },
     [](auto& t) { t.clear(); }, true},
};

class EachFailure : public FailureTest, public testing::WithParamInterface<Failure> {};

TEST_P(EachFailure, IsReportedToABlockedMemberAndTheDeviceCanBeReopened) {
  const Failure& failure = GetParam();
  start_members(2, {.rounds = std::uint64_t{1} << 40, .wait_ms = 200'000, .hold_at = failure.running ? 0U : 20U});
  ASSERT_TRUE(member(1).wait_for_output(failure.running ? "joined" : "holding", kLimit)) << member(1).output();
  ASSERT_TRUE(member(0).wait_for_output("joined", kLimit)) << member(0).output();
  failure.happen(*this);
  // Well before the member's own limit of 200 s, at which it would end in any case.
  const auto exit = member(0).wait(Seconds{100});
  ASSERT_TRUE(exit) << member(0).output();
  EXPECT_EQ(exit->signal, 0) << member(0).output();
  EXPECT_EQ(exit->code, 3) << member(0).output();
  EXPECT_THAT(member(0).output(), testing::HasSubstr("failed wait " + std::to_string(failure.error) + " gba: "));
  EXPECT_THAT(member(0).output(), ContainsRegex(failure.text));
  failure.repair(*this);
  expect_to_work_when_reopened();
}

INSTANTIATE_TEST_SUITE_P(All, EachFailure, testing::ValuesIn(kFailures),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Failures, HaveErrnosOfTheirOwn) {
  std::set<int> errors{ETIMEDOUT, EAGAIN};
  for (const Failure& failure : kFailures) {
    EXPECT_TRUE(errors.insert(failure.error).second) << failure.name;
  }
}

// faulty_device_test has the release that is lost a few times, which the member repairs by arriving again.

}  // namespace
}  // namespace driver_test
