// SPDX-License-Identifier: Apache-2.0
// Members of an exchange in one process that count as on different nodes.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "tests/unit/kv/exchange_fixture.hpp"

namespace exchange_test {

inline shmemx_exchange_network_t network_of(const std::string& members, const char* secret = "a secret",
                                            std::uint32_t answer_ms = kLongMs) {
  return {.listen = "127.0.0.1:0",
          .members = members.c_str(),
          .secret = secret,
          .answer_ms = answer_ms,
          .reserved = {0, 0, 0, 0, 0}};
}
shmemx_exchange_network_t network_of(std::string&&, const char* = "", std::uint32_t = 0) = delete;  // it points there

/// A member on a node of its own.
inline std::unique_ptr<Member> member_on_node(const std::string& exchange, const std::string& node,
                                              const Options& options = {}) {
  ::setenv("SHMEM_HOST_ID", node.c_str(), 1);
  auto member = std::make_unique<Member>(exchange, options);
  ::unsetenv("SHMEM_HOST_ID");
  return member;
}

inline std::string address_of(const Member& member) {
  char text[64] = "";
  EXPECT_GT(shmemx_exchange_address(member.get(), text, sizeof text), 0) << shmemx_error_text();
  return text;
}

/// The same, connected with the members at these addresses.
inline std::unique_ptr<Member> connected_member(const std::string& exchange, const std::string& node,
                                                const std::string& members = "", const Options& options = {},
                                                std::uint32_t answer_ms = kLongMs) {
  auto member = member_on_node(exchange, node, options);
  const auto network = network_of(members, "a secret", answer_ms);
  EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), 0) << shmemx_error_text();
  return member;
}

/// A test of an owner of blocks and a reader, on different nodes.
class NodesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!KV_WITH_UCX) {
      GTEST_SKIP() << "built without UCX";
    }
  }

  std::string name_;
  std::unique_ptr<Member> owner_;
  std::unique_ptr<Member> reader_;
};

}  // namespace exchange_test
