// SPDX-License-Identifier: Apache-2.0
// kill -9 of a client at each step, while another member of its group waits for it.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/integration/fake_device/hostile/bystanders.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::Port;

enum Step {
  kConnected,
  kHalfVersion,
  kVersion,
  kOpened,  // BARs and DMA memory mapped
  kArmed,
  kJoined,
  kArrived,
  kArrivedAgain,
  kHalfMessage,
  kSteps
};

/// A process that goes as far as `step` and then stays until it is killed.
class Victim {
 public:
  Victim(const std::string& path, const Port::Group& group, int step) {
    std::array<int, 2> ready{-1, -1};
    EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      play(path, group, step, ready[1]);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "step " << step << " was not reached";
    ::close(ready[0]);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim() { kill(); }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 private:
  [[noreturn]] static void stay(int ready) {
    [[maybe_unused]] const auto told = ::write(ready, "", 1);
    while (true) {
      ::pause();
    }
  }

  [[noreturn]] static void play(const std::string& path, const Port::Group& group, int step, int ready) {
    const auto eventfd = raw::make_eventfd();
    const std::array fds{eventfd.get()};
    if (step <= kVersion) {
      Client client(path);
      const vfio_user_version version{.major = 0, .minor = 0};
      const auto frame = client.frame(VFIO_USER_VERSION, bytes_of(version));
      if (step > kConnected) {
        client.send_bytes(std::span(frame).first(step == kVersion ? frame.size() : 10));
      }
      stay(ready);
    }
    Port port(path);
    if (step >= kArmed) {
      port.arm(GBA_IRQ_MSIX, 0, fds);
    }
    if (step >= kJoined) {
      port.join(group, 1);
    }
    if (step >= kArrived) {
      port.arrive(group, 1, 1);
    }
    if (step >= kArrivedAgain) {
      port.arrive(group, 1, 1, /*notify=*/true);
    }
    if (step >= kHalfMessage) {
      port.client().send_bytes(std::vector<std::byte>(7));
    }
    stay(ready);
  }

  pid_t pid_ = -1;
};

class Killed : public raw::Bystanders {
 protected:
  static std::uint64_t left(std::uint64_t released) {
    return GBA_FIELD_PUT(GBA_FLAG_ERROR, 1) | GBA_FIELD_PUT(GBA_FLAG_CODE, 0u + GBA_ERROR_LEAVE) | released;
  }
};

// A victim that has joined the enabled group is missed there: its death is an error of the group. Before that the group
// does not know it.
TEST_F(Killed, AtAnyStepWhileAnotherWaits) {
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(step);
    Port waiter(path());
    const auto eventfd = raw::make_eventfd();
    ASSERT_EQ(waiter.arm(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR, std::array{eventfd.get()}), 0);
    const auto group = waiter.make_group(2);
    waiter.join(group, 0);
    if (step < kArrived) {
      waiter.arrive(group, 0, 1);
    }
    Victim victim(path(), group, step);
    EXPECT_EQ(waiter.read(GBA_GROUP_BASE(group.id) + GBA_GROUP_ARRIVAL_COUNT, 4), 1U);
    victim.kill();
    if (step < kJoined) {
      Port instead(path());
      instead.join(group, 1);
      instead.arrive(group, 1, 1);
      EXPECT_EQ(waiter.wait_flag(group, 0), 1U);
    } else {
      EXPECT_EQ(waiter.wait_flag(group, 0), left(0));
      EXPECT_EQ(raw::wait_event(eventfd.get()), 1U) << "the error vector";
    }
    expect_unharmed();
  }
  expect_no_files_left();
}

TEST_F(Killed, AfterARoundThatItHasCompleted) {
  Port waiter(path());
  const auto group = waiter.make_group(2);
  waiter.join(group, 0);
  waiter.arrive(group, 0, 1);
  Victim victim(path(), group, kArrived);
  EXPECT_EQ(waiter.wait_flag(group, 0), 1U);
  waiter.arrive(group, 0, 2);
  victim.kill();
  EXPECT_EQ(waiter.wait_flag(group, 1), left(1)) << "the error word has the number of the last released barrier";
  expect_unharmed();
}

TEST_F(Killed, AsOwnerOfAGroupWithOtherMembers) {
  std::array<int, 2> tell{-1, -1};
  ASSERT_EQ(::pipe2(tell.data(), O_CLOEXEC), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    Port port(path());
    const auto group = port.make_group(2);
    [[maybe_unused]] const auto told = ::write(tell[1], &group, sizeof group);
    while (true) {
      ::pause();
    }
  }
  Port::Group group{};
  ASSERT_EQ(::read(tell[0], &group, sizeof group), ssize_t{sizeof group});
  ::close(tell[0]);
  ::close(tell[1]);
  Port waiter(path());
  waiter.join(group, 0);
  waiter.arrive(group, 0, 1);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  EXPECT_EQ(waiter.wait_flag(group, 0), left(0));
  expect_unharmed();
}

}  // namespace
