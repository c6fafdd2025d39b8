// SPDX-License-Identifier: Apache-2.0
// Runs misbehaving clients for a while, alongside bystanders and newcomers.
#pragma once

#include <sys/resource.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/integration/fake_device/hostile/bystanders.hpp"
#include "tests/support/soak.hpp"

namespace raw {

/// Raises the limit of open files until it is destroyed. The device raises its own to the same hard limit.
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
/// One hostile client; each has another `number`. It may throw when the device drops its connection: it is called again
/// until the attack ends.
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

/// A register write of a batch.
inline vfio_user_write_multi_entry write_of(std::uint64_t offset, std::uint64_t value) {
  vfio_user_write_multi_entry entry{.offset = offset, .region = GBA_REGION_CONTROL, .count = 8, .data = {}};
  std::memcpy(entry.data, &value, sizeof value);
  return entry;
}

/// The payload of a batch of `count` times two writes.
inline std::vector<std::byte> writes(std::uint64_t count, const vfio_user_write_multi_entry& first,
                                     const vfio_user_write_multi_entry& second) {
  auto payload = bytes_of(2 * count);
  payload.reserve(payload.size() + 2 * count * sizeof first);
  for (std::uint64_t pair = 0; pair < count; ++pair) {
    payload = raw::join(std::move(payload), std::as_bytes(std::span(&first, 1)));
    payload = raw::join(std::move(payload), std::as_bytes(std::span(&second, 1)));
  }
  return payload;
}

/// Connects repeatedly while the object lives, like jobs that start.
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
  /// The longest time from connect to an armed interrupt. REQUIRES: end() has returned.
  [[nodiscard]] milliseconds longest() const { return longest_; }
  /// Why a connection failed, or empty. REQUIRES: end() has returned.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  void run() {
    while (!stop_ && refusal_.empty()) {
      try {
        const auto start = Clock::now();
        Port port(path_);
        const auto eventfd = make_eventfd();
        const int error = port.arm(GBA_IRQ_MSIX, 0, std::array{eventfd.get()});
        refusal_ = error == 0 ? "" : fmt::format("no interrupt: {}", std::generic_category().message(error));
        longest_ = std::max(longest_, std::chrono::duration_cast<milliseconds>(Clock::now() - start));
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
  milliseconds longest_{0};
  std::string refusal_;
  std::thread thread_;  // last, since it uses the other members
};

class Attacks : public Bystanders {
 protected:
  explicit Attacks(const std::vector<std::string>& options = {}, const std::vector<std::string>& launcher = {})
      : Bystanders(options, microseconds(0), launcher) {}

  /// Runs `count` attackers at once for a second, up to three times, and takes the best result: delays that the
  /// attackers cause come each time, delays of the machine do not. A soak runs them once, for ten seconds.
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
    std::vector<std::thread> threads;
    Newcomers newcomers(path());
    const auto end = Clock::now() + std::chrono::seconds(test_support::repeats(1, 10));
    const auto go_on = [&, end] {
      const auto last = newcomers.welcome() > 0 ? end : end + std::chrono::minutes(1);
      return Clock::now() < last && !loop().lost() && device().running();
    };
    loop().take_worst();
    for (unsigned number = 0; number < count; ++number) {
      threads.emplace_back([&attacker, go_on, number] {
        while (go_on()) {
          try {
            attacker(go_on, number);
          } catch (const std::exception&) {
            std::this_thread::sleep_for(milliseconds(1));  // the device has dropped it: it connects again
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
    std::printf("longest connect: %lld ms\n", static_cast<long long>(newcomers.longest().count()));
    EXPECT_LT(newcomers.longest(), 100 * worst_barrier());
    return loop().lost() ? std::chrono::duration_cast<microseconds>(std::chrono::hours(1)) : worst;
  }
};

}  // namespace raw
