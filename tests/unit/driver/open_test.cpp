// SPDX-License-Identifier: Apache-2.0
// The choice of the device to open, and sharing one within a process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "driver/discovery.hpp"
#include "driver/registry.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/driver/device_fixture.hpp"

namespace gba::test {
namespace {

using testing::HasSubstr;

class FindDevice : public testing::Test {
 protected:
  FindDevice() { ::unsetenv("GBA_DEVICE"); }
  ~FindDevice() override { ::unsetenv("GBA_DEVICE"); }
  std::string socket_at(const std::string& path) {
    sockets_.emplace_back(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(static_cast<char*>(address.sun_path), path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(sockets_.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return path;
  }
  static std::errc error_of(const std::string& path) {
    const auto found = find_device(path.c_str());
    return found ? std::errc{} : found.error().code;
  }

  test_support::TempDir dir_;
  std::vector<base::UniqueFd> sockets_;
};

TEST_F(FindDevice, TakesTheArgumentThenTheVariableThenTheDefault) {
  const std::string one = socket_at(dir_.file("one"));
  const std::string two = socket_at(dir_.file("two"));
  ::setenv("GBA_DEVICE", two.c_str(), 1);
  EXPECT_EQ(find_device(one.c_str())->socket, one);
  EXPECT_EQ(find_device(nullptr)->socket, two);
  EXPECT_EQ(find_device("")->socket, two);
  ::setenv("GBA_DEVICE", "", 1);
  const auto found = find_device(nullptr);
  const std::string chosen = found ? found->shown : found.error().text;
  EXPECT_THAT(chosen, HasSubstr("/dev/gba0"));
}

TEST_F(FindDevice, RecognizesVfioUserNames) {
  EXPECT_EQ(find_device("vfio-user:/no/where")->socket, "/no/where");
  EXPECT_EQ(find_device("vfio-user:/no/where")->shown, "vfio-user:/no/where");
  EXPECT_EQ(find_device("vfio-user:@name")->socket, "@name");
  EXPECT_EQ(find_device("@name")->shown, "vfio-user:@name");
  EXPECT_EQ(error_of("vfio-user:"), std::errc::invalid_argument);
}

TEST_F(FindDevice, RecognizesTwoNamesOfOneDevice) {
  const std::string socket = socket_at(dir_.file("socket"));
  ASSERT_EQ(::symlink(socket.c_str(), dir_.file("gba0").c_str()), 0);
  const auto link = find_device(dir_.file("gba0").c_str());
  ASSERT_TRUE(link);
  EXPECT_EQ(link->key, find_device(("vfio-user:" + socket).c_str())->key);
  EXPECT_NE(link->key, find_device(socket_at(dir_.file("other")).c_str())->key);
}

TEST_F(FindDevice, RefusesNamesThatAreNotDevices) {
  EXPECT_EQ(error_of(dir_.file("none")), std::errc::no_such_device);
  EXPECT_EQ(error_of("0000:3b:00.0"), std::errc::no_such_device);
  EXPECT_EQ(error_of(dir_.path()), std::errc::invalid_argument);
  { const base::UniqueFd file(::open(dir_.file("file").c_str(), O_CREAT | O_WRONLY, 0600)); }
  EXPECT_EQ(error_of(dir_.file("file")), std::errc::invalid_argument);
  EXPECT_EQ(error_of(dir_.file("file") + "/below"), std::errc::no_such_device);
  EXPECT_EQ(error_of("/dev/null"), std::errc::no_such_device);
  EXPECT_THAT(find_device("/dev/null").error().text, HasSubstr("a character device"));
}

class RegistryTest : public testing::Test {
 protected:
  Result<std::shared_ptr<Device>> open(const std::string& key) {
    return registry_.open(key, [this] {
      ++opened_;
      return open_fake(std::make_shared<FakeState>());
    });
  }

  Registry registry_;
  std::atomic<int> opened_{0};
};

TEST_F(RegistryTest, GivesTheSameDeviceForTheSameKey) {
  const auto one = open("a");
  const auto two = open("a");
  const auto other = open("b");
  ASSERT_TRUE(one && two && other);
  EXPECT_EQ(*one, *two);
  EXPECT_NE(*one, *other);
  EXPECT_EQ(opened_, 2);
}

TEST_F(RegistryTest, OpensAgainAfterTheLastClose) {
  (void)open("a");
  ASSERT_TRUE(open("a"));
  EXPECT_EQ(opened_, 2);
}

TEST_F(RegistryTest, ReopensALostDevice) {
  const auto lost = open("a");
  (*lost)->backend().declare_lost(Loss::kRemoved);
  const auto fresh = open("a");
  ASSERT_TRUE(fresh);
  EXPECT_NE(*lost, *fresh);
}

TEST_F(RegistryTest, CloseOfALostDeviceLeavesItsSuccessorShared) {
  auto lost = open("a");
  (*lost)->backend().declare_lost(Loss::kRemoved);
  const auto fresh = open("a");
  lost->reset();
  EXPECT_EQ(*open("a"), *fresh);
  EXPECT_EQ(opened_, 2);
}

/// The last user of a lost device releases it while the registry opens it again. The registry must not wait for itself.
TEST_F(RegistryTest, MayHoldTheLastReferenceToALostDevice) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    auto state = std::make_shared<FakeState>();
    auto holder = registry_.open("a", [&] { return open_fake(state); });
    state->when_lost = [&] { holder->reset(); };
    ::eventfd_write(state->loss.get(), 1);
    ::_exit(open("a") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the registry waits for itself";
}

TEST_F(RegistryTest, ReportsWhyADeviceCannotBeOpened) {
  const auto none = registry_.open(
      "a", []() -> Result<std::unique_ptr<Device>> { return fail(std::errc::no_such_device, "there is none"); });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text, "there is none");
  EXPECT_TRUE(open("a"));
}

/// Opens devices whose closing takes a while, and counts the open ones: a backend's FakeState is destroyed with it.
class SlowlyClosed {
 public:
  Result<std::unique_ptr<Device>> open() {
    if (++live_ > 1) {
      twice_ = true;
    }
    return open_fake(std::shared_ptr<FakeState>(std::make_unique<FakeState>().release(), [this](FakeState* last) {
      const std::unique_ptr<FakeState> owner(last);
      closing_ = true;
      for (int i = 0; i < 20 && !twice_; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
      --live_;
    }));
  }
  void wait_until_closing() const {
    while (!closing_) {
      std::this_thread::yield();
    }
  }
  [[nodiscard]] bool twice() const { return twice_; }
  [[nodiscard]] int live() const { return live_; }

 private:
  std::atomic<int> live_{0};
  std::atomic<bool> twice_{false};
  std::atomic<bool> closing_{false};
};

TEST_F(RegistryTest, WaitsForADeviceThatIsBeingClosed) {
  SlowlyClosed devices;
  const auto opener = [&] { return devices.open(); };
  auto first = registry_.open("a", opener);
  std::thread other([&] {
    devices.wait_until_closing();
    EXPECT_TRUE(registry_.open("a", opener));
  });
  first->reset();
  other.join();
  EXPECT_FALSE(devices.twice());
  EXPECT_EQ(devices.live(), 0);
}

TEST_F(RegistryTest, NeverOpensOneKeyTwiceAtATime) {
  SlowlyClosed devices;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(registry_.open("a", [&] { return devices.open(); }));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_FALSE(devices.twice());
  EXPECT_EQ(devices.live(), 0);
}

}  // namespace
}  // namespace gba::test
