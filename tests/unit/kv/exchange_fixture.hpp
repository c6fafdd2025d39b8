// SPDX-License-Identifier: Apache-2.0
// Members of an exchange in one process, through the calls of C.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "shmemx.h"
#include "shmemx_exchange.h"

namespace exchange_test {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::chrono::seconds kLong{60};

/// An exchange of this process and this number.
inline std::string exchange_name(int number) {
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(number);
}

inline shmemx_exchange_key_t key_of(const std::string& text) {
  return {text.data(), text.size()};
}
shmemx_exchange_key_t key_of(std::string&&) = delete;  // it points to the text

/// Limits that no busy machine reaches.
constexpr std::uint32_t kLongMs = 60'000;

/// shmemx_exchange_options_t, of which a test names what it needs.
struct Options {
  std::uint32_t blocks = 0, leases = 0, lease_ms = 0, transfers = 0, join_ms = kLongMs, last_reserved = 0;
  const char* metrics = nullptr;
  const char* directory = nullptr;
  [[nodiscard]] shmemx_exchange_options_t get() const {
    return {blocks, leases, lease_ms, transfers, join_ms, {0, 0, last_reserved}, metrics, directory};
  }
};

/// While it exists, this process gets so many further descriptors and no more.
class FewDescriptors {
 public:
  /// In place of a number: not even those that other threads close meanwhile.
  static constexpr int kNone = -1;

  explicit FewDescriptors(int more) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int first = ::dup(STDERR_FILENO);  // the lowest that is free; higher ones may be in use
    ::close(first);
    rlimit few = before_;
    few.rlim_cur = more == kNone ? STDERR_FILENO + 1 : static_cast<rlim_t>(first + more);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// A process that has what `make` returns, a member or a holder, until it is killed.
class OtherProcess {
 public:
  template <typename Make>
  explicit OtherProcess(Make make) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::alarm(60);
      const auto held = make();
      ::close(ready[1]);
      ::pause();
      ::_exit(0);
    }
    ::close(ready[1]);
    char none = 0;
    EXPECT_EQ(::read(ready[0], &none, 1), 0);
    ::close(ready[0]);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }

 private:
  pid_t pid_ = -1;
};

class Member {
 public:
  explicit Member(const std::string& name, const Options& given = {}) {
    const shmemx_exchange_options_t options = given.get();
    EXPECT_EQ(shmemx_exchange_open(name.c_str(), &options, &exchange_), 0) << shmemx_error_text();
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() { close(); }
  void close() { shmemx_exchange_close(std::exchange(exchange_, nullptr)); }

  [[nodiscard]] shmemx_exchange_t* get() const { return exchange_; }
  [[nodiscard]] char* memory() const { return static_cast<char*>(memory_.address); }
  [[nodiscard]] std::uint32_t region() const { return region_; }
  [[nodiscard]] const std::string& error() { return error_ = shmemx_error_text(); }

  void make_memory(std::size_t bytes) {
    memory_ = {.address = nullptr, .bytes = bytes, .fd = -1, .offset = 0};
    ASSERT_EQ(shmemx_exchange_register(exchange_, &memory_, &region_), 0) << shmemx_error_text();
  }
  /// Publishes a part of make_memory(). Returns the status.
  int publish(const std::string& key, std::size_t offset, std::size_t bytes, std::uint64_t layout = 0) {
    shmemx_exchange_entry_t entry{
        .key = key_of(key), .region = region_, .status = 1, .offset = offset, .bytes = bytes, .layout = layout};
    const int count = shmemx_exchange_publish(exchange_, &entry, 1);
    EXPECT_EQ(count, entry.status == 0 ? 1 : 0);
    return entry.status;
  }
  int withdraw(const std::string& key, std::uint64_t timeout_ns = 0) {
    const auto name = key_of(key);
    return shmemx_exchange_withdraw(exchange_, &name, 1, timeout_ns);
  }
  shmemx_exchange_block_t find(const std::string& key, std::uint64_t layout = 0, std::uint32_t lease_ms = 0) {
    const auto name = key_of(key);
    shmemx_exchange_block_t block{};
    const int count = shmemx_exchange_find(exchange_, &name, 1, layout, lease_ms, &block);
    EXPECT_EQ(count, block.status == 0 ? 1 : 0);
    return block;
  }
  /// Finds the key, waiting for members that the exchange has just heard of.
  shmemx_exchange_block_t find_soon(const std::string& key) {
    const auto end = std::chrono::steady_clock::now() + kLong;
    auto block = find(key);
    while (block.status != 0 && std::chrono::steady_clock::now() < end) {
      ::usleep(1000);
      block = find(key);
    }
    return block;
  }
  int pull(const shmemx_exchange_block_t& block, std::string& bytes) {
    bytes.assign(block.bytes, '?');
    void* const to = bytes.data();
    std::int32_t status = 1;
    const int code = shmemx_exchange_pull(exchange_, &block, &to, 1, &status, nullptr);
    EXPECT_EQ(code, status);
    return code;
  }
  int release(shmemx_exchange_block_t& block) { return shmemx_exchange_release(exchange_, &block, 1); }
  shmemx_exchange_stats_t stats() {
    shmemx_exchange_stats_t stats;
    EXPECT_EQ(shmemx_exchange_stats(exchange_, &stats), 0);
    return stats;
  }

 private:
  shmemx_exchange_t* exchange_ = nullptr;
  shmemx_memory_t memory_{};
  std::uint32_t region_ = 0;
  std::string error_;
};

}  // namespace exchange_test
