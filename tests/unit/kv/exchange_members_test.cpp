// SPDX-License-Identifier: Apache-2.0
// What a member keeps of others that have gone.
#include "kv/service/members.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "kv/service/directory_writer.hpp"
#include "tests/unit/kv/exchange_fixture.hpp"

namespace {

using exchange_test::exchange_name;
using exchange_test::Member;
using shmem::exchange::Counters;
using shmem::exchange::DirectoryWriter;
using shmem::exchange::Members;
using shmem::exchange::Peer;
using shmem::exchange::Peers;

/// False: it did not happen in 10 seconds.
template <typename Condition>
bool soon(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// A call that uses a member while that is killed must not pay for freeing the memory that the member had.
TEST(ExchangeMembers, TheLastCallThatUsesAMemberDoesNotUnmapItsMemory) {
  constexpr std::uint32_t kEntries = 8;
  const std::string name = exchange_name(60);
  auto owner = std::make_unique<Member>(name);
  owner->make_memory(1 << 20);
  auto directory = DirectoryWriter::create(kEntries);
  ASSERT_TRUE(directory);
  Counters counters;
  const auto members = Members::open(name, {.id = 7, .directory = directory->file(), .slots = kEntries, .quota = 4},
                                     std::chrono::seconds(10), counters);
  ASSERT_TRUE(members) << members.error().text;
  ASSERT_TRUE(soon([&] { return (*members)->peers()->size() == 1; }));
  Peers of_a_call = (*members)->peers();
  const std::weak_ptr<Peer> peer = of_a_call->front();
  owner.reset();
  ASSERT_TRUE(soon([&] { return (*members)->peers()->empty(); }));
  EXPECT_EQ(peer.use_count(), 2) << "of the call, and of the thread that unmaps";
  of_a_call.reset();
  EXPECT_TRUE(soon([&] { return peer.expired(); })) << "and does so";
}

}  // namespace
