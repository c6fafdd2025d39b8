// SPDX-License-Identifier: Apache-2.0
// A holder and engines in one process, through the calls of C.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/kv/exchange_fixture.hpp"

namespace exchange_test {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct HolderOptions {
  std::uint64_t bytes = 4 * kMiB;
  std::vector<std::pair<const char*, std::uint64_t>> tenants{};
  std::uint32_t blocks = 0, lease_ms = 0;
  const char* metrics = nullptr;
  const char* directory = nullptr;
};

class Holder {
 public:
  explicit Holder(const std::string& name, const HolderOptions& given = {}) {
    EXPECT_EQ(open(name, given, exchange_), 0) << shmemx_error_text();
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { close(); }
  void close() { shmemx_exchange_close(std::exchange(exchange_, nullptr)); }
  [[nodiscard]] shmemx_exchange_t* get() const { return exchange_; }

  static int open(const std::string& name, const HolderOptions& given, shmemx_exchange_t*& exchange) {
    std::vector<shmemx_exchange_tenant_t> tenants;
    for (const auto& [tenant, bytes] : given.tenants) {
      tenants.push_back({tenant, bytes});
    }
    const auto options =
        Options{
            .blocks = given.blocks, .lease_ms = given.lease_ms, .metrics = given.metrics, .directory = given.directory}
            .get();
    const shmemx_exchange_holding_t holding{
        .bytes = given.bytes, .tenants = tenants.data(), .tenant_count = tenants.size(), .reserved = {0, 0, 0, 0}};
    return shmemx_exchange_hold(name.c_str(), &options, &holding, &exchange);
  }

 private:
  shmemx_exchange_t* exchange_ = nullptr;
};

/// A member that uses the holder.
class Engine : public Member {
 public:
  explicit Engine(const std::string& name, const char* tenant = nullptr, const Options& given = {})
      : Member(name, given) {
    EXPECT_EQ(shmemx_exchange_use_holder(get(), tenant, kLongMs), 0);
  }
  int put(const std::string& key, const std::string& bytes, std::uint64_t layout = 1, std::uint32_t flags = 0) {
    shmemx_exchange_put_t put{.key = key_of(key),
                              .source = bytes.data(),
                              .bytes = bytes.size(),
                              .layout = layout,
                              .status = 1,
                              .flags = flags};
    int count = shmemx_exchange_put(get(), &put, 1);
    for (int i = 0; i < 20 && put.status == -ESTALE; ++i) {  // it got no processor between the parts of a large block
      count = shmemx_exchange_put(get(), &put, 1);
    }
    EXPECT_EQ(count, put.status == 0 || put.status == -EEXIST ? 1 : count < 0 ? put.status : 0);
    return put.status;
  }
  int discard(const std::string& key, std::uint64_t layout = 1) {
    const auto name = key_of(key);
    std::int32_t status = 1;
    shmemx_exchange_discard(get(), &name, 1, layout, &status);
    return status;
  }
  int pin(const std::string& key, bool pinned, std::uint64_t layout = 1) {
    const auto name = key_of(key);
    std::int32_t status = 1;
    shmemx_exchange_pin(get(), &name, 1, layout, pinned ? 1 : 0, &status);
    return status;
  }
  /// The bytes of the block, "" if there is none.
  std::string get_block(const std::string& key, std::uint64_t layout = 1) {
    const auto block = find(key, layout);
    std::string bytes;
    return block.status == 0 && pull(block, bytes) == 0 ? bytes : "";
  }
  bool has(const std::string& key, std::uint64_t layout = 1) { return find(key, layout).status == 0; }
  shmemx_exchange_holder_stats_t holder_stats() {
    shmemx_exchange_holder_stats_t stats{};
    EXPECT_EQ(shmemx_exchange_holder_stats(get(), &stats), 0) << shmemx_error_text();
    return stats;
  }
};

inline std::string block_of(char letter, std::size_t bytes) {
  return std::string(bytes, letter);
}

}  // namespace exchange_test
