// SPDX-License-Identifier: Apache-2.0
// Memory that members of the same user share, or receive, without keeping to the protocol.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "tests/unit/kv/exchange_impostor.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about

/// An owner that keeps to the protocol, on a seat behind the impostor's, whose block the member has found.
std::unique_ptr<Member> honest_owner(Beside& beside, int number) {
  auto owner = std::make_unique<Member>(exchange_name(number), Options{.join_ms = 1});
  owner->make_memory(4096);
  EXPECT_EQ(owner->publish("key", 0, 8), 0);
  EXPECT_EQ(owner->publish("its own", 8, 8), 0);
  EXPECT_EQ(beside.member->find_soon("its own").status, 0);
  return owner;
}

/// The impostor has the key, too: of its block nothing arrives, and then the member finds that of the owner.
void expect_other_is_found(Beside& beside, const Member&, int error) {
  const auto bad = beside.member->find("key");
  ASSERT_EQ(bad.status, 0);
  ASSERT_EQ(bad.seat, beside.impostor.seat());
  std::string bytes;
  EXPECT_EQ(beside.member->pull(bad, bytes), error);
  const auto good = beside.member->find("key");
  ASSERT_EQ(good.status, 0);
  EXPECT_NE(good.seat, beside.impostor.seat());
  EXPECT_EQ(beside.member->pull(good, bytes), 0);
}

TEST(HostileMemory, ABadEntryDoesNotHideTheSameKeyOfAnotherOwner) {
  Beside beside(170);
  const auto owner = honest_owner(beside, 170);
  beside.impostor.publish("key", {1, 4096, 8, 0});
  expect_other_is_found(beside, *owner, -EBADMSG);
  beside.impostor.publish("mine", {1, 0, 8, 0});
  EXPECT_EQ(beside.member->find("mine").status, 0) << "what no other member has is found as before";
}

TEST(HostileMemory, AFileThatHasShrunkDoesNotHideTheSameKeyOfAnotherOwner) {
  Beside beside(171);
  const auto owner = honest_owner(beside, 171);
  const base::UniqueFd file(::memfd_create("shrinks", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  beside.impostor.send_region(2, file.get(), 0, 4096);
  beside.impostor.publish("key", {2, 0, 8, 0});
  std::string bytes;
  EXPECT_EQ(beside.member->pull(beside.member->find("key"), bytes), 0);
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  expect_other_is_found(beside, *owner, -EIO);
}

TEST(HostileMemory, HugeRegionsLeaveAddressesForOthers) {
  constexpr std::size_t kTebibyte = std::size_t{1} << 40;
  Beside beside(172);
  std::uint32_t region = 2;
  // As much as a process can address, in parts that fit into what the larger ones have left.
  for (std::size_t bytes = 64 * kTebibyte; bytes >= kTebibyte / 2; bytes /= 2) {
    for (int i = 0; i < 2; ++i) {
      const auto file = base::create_memfd("huge", bytes);
      ASSERT_TRUE(file);
      beside.impostor.send_region(region++, file->get(), 0, bytes);
    }
  }
  beside.impostor.publish("key", {region - 1, kTebibyte / 4, 8, 0});
  std::string bytes;
  EXPECT_EQ(beside.member->pull(beside.member->find("key"), bytes), 0);
  EXPECT_EQ(bytes, std::string(8, '\0'));
  void* const mine = ::mmap(nullptr, kTebibyte, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(mine, MAP_FAILED);
  ::munmap(mine, kTebibyte);
  const auto owner = honest_owner(beside, 172);
  EXPECT_EQ(beside.member->pull(beside.member->find("its own"), bytes), 0);
}

}  // namespace
