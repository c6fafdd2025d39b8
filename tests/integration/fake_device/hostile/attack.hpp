// SPDX-License-Identifier: Apache-2.0
// Runs clients that misbehave for a while beside bystanders and newcomers.
#pragma once

#include <sys/resource.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/integration/fake_device/hostile/bystanders.hpp"
#include "tests/support/soak.hpp"

namespace raw {

/// Raises the limit of open files, not for good. The device raises its own to the same hard limit.
class FileLimit {
 public:
  explicit FileLimit(rlim_t wanted) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = std::min(wanted, before_.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    enough_ = limit.rlim_cur >= wanted;
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  [[nodiscard]] bool enough() const { return enough_; }

 private:
  rlimit before_{};
  bool enough_ = false;
};

/// True until the attack is to end.
using GoOn = std::function<bool()>;
/// What one hostile client does; `number` tells several apart. It may throw when the device drops it: it is called
/// again as long as the attack lasts.
using Attacker = std::function<void(const GoOn& go_on, unsigned number)>;

/// A connection whose sends give up after a while, so that an attack ends.
inline void limit_sends(const Client& client) {
  const timeval limit{.tv_sec = 0, .tv_usec = 200'000};
  ::setsockopt(client.socket(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

inline bool send(Client& client, std::uint16_t command, std::span<const std::byte> payload,
                 std::span<const int> fds = {}) {
  return client.send_bytes(client.frame(command, payload, VFIO_USER_TYPE_COMMAND | VFIO_USER_NO_REPLY), fds);
}

/// Connects again and again as long as the object lives, as jobs that start do.
class Newcomers {
 public:
  explicit Newcomers(std::string path) : path_(std::move(path)), thread_([this] { run(); }) {}
  Newcomers(const Newcomers&) = delete;
  Newcomers& operator=(const Newcomers&) = delete;
  ~Newcomers() { end(); }

  void end() {
    stop_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  [[nodiscard]] unsigned welcome() const { return welcome_; }
  /// Why one could not get in; empty if all could. Once end() has returned.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  void run() {
    while (!stop_ && refusal_.empty()) {
      try {
        Port port(path_);
        const auto eventfd = make_eventfd();
        const int error = port.arm(GBA_IRQ_MSIX, 0, std::array{eventfd.get()});
        refusal_ = error == 0 ? "" : fmt::format("no interrupt: {}", std::generic_category().message(error));
        ++welcome_;
      } catch (const std::exception& error) {
        refusal_ = error.what();
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
  }

  const std::string path_;
  std::atomic<bool> stop_ = false;
  std::atomic<unsigned> welcome_ = 0;
  std::string refusal_;
  std::thread thread_;  // the last: it uses the others
};

class Attacks : public Bystanders {
 protected:
  explicit Attacks(const std::vector<std::string>& options = {}, const std::vector<std::string>& launcher = {})
      : Bystanders(options, microseconds(0), launcher) {}

  /// `count` attackers at once, for a second in CI. A delay that they cause comes each time, one of the machine's does
  /// not: the best of three seconds counts. A soak looks at ten seconds as they are.
  void expect_harmless(const Attacker& attacker, unsigned count = 1) {
    auto worst = microseconds::max();
    for (int run = 0; run < test_support::repeats(3, 1) && worst >= worst_barrier() && !loop().lost(); ++run) {
      worst = std::min(worst, attack(attacker, count));
    }
    RecordProperty("worst_barrier_us", static_cast<int>(worst.count()));
    std::printf("worst barrier: %.1f ms\n", static_cast<double>(worst.count()) / 1000);
    EXPECT_LT(worst, worst_barrier());
    expect_unharmed();
  }

 private:
  microseconds attack(const Attacker& attacker, unsigned count) {
    const auto end = Clock::now() + std::chrono::seconds(test_support::repeats(1, 10));
    const auto go_on = [this, end] { return Clock::now() < end && !loop().lost() && device().running(); };
    std::vector<std::thread> threads;
    Newcomers newcomers(path());
    loop().take_worst();
    for (unsigned number = 0; number < count; ++number) {
      threads.emplace_back([&attacker, go_on, number] {
        while (go_on()) {
          try {
            attacker(go_on, number);
          } catch (const std::exception&) {
            std::this_thread::sleep_for(milliseconds(1));  // dropped: it comes back
          }
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    EXPECT_TRUE(loop().goes_on());
    const auto worst = loop().take_worst();
    newcomers.end();
    EXPECT_EQ(newcomers.refusal(), "") << device().output().substr(0, 2000);
    EXPECT_GT(newcomers.welcome(), 0U);
    return loop().lost() ? std::chrono::duration_cast<microseconds>(std::chrono::hours(1)) : worst;
  }
};

}  // namespace raw
