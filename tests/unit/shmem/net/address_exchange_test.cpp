// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/address_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/unit/shmem/network_processes.hpp"

namespace shmem {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::NetworkPe;
using testing::with_network;
using NetworkStartTest = testing::NetworkTest;

const std::vector<std::string> kNames{"PE 0 (on kiwi)", "PE 1 (on plum)", "PE 2 (on pear)"};

PeAddress some_address() {
  return {.major = 1,
          .minor = 13,
          .address = {std::byte{1}, std::byte{2}},
          .segments = {SegmentAddress{0x1000, 4096, {std::byte{3}}}, SegmentAddress{}, SegmentAddress{9, 8, {}}}};
}

std::vector<AddressHeader> heads() {
  return std::vector<AddressHeader>(3, {kAddressMagic, kAddressVersion, 1, 13, 100, 5});
}

TEST(PeAddress, ArrivesUnchanged) {
  const auto arrived = unpack_address(pack_address(some_address(), 77), 77);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->address, some_address().address);
  for (std::size_t i = 0; i < kSegments; ++i) {
    EXPECT_EQ(arrived->segments[i].address, some_address().segments[i].address);
    EXPECT_EQ(arrived->segments[i].bytes, some_address().segments[i].bytes);
    EXPECT_EQ(arrived->segments[i].key, some_address().segments[i].key);
  }
}

TEST(AddressHeads, ThatAnnounceTooManyBytesAreRefused) {
  auto announced = heads();
  announced[1].rest = kLongestAddress;
  EXPECT_TRUE(check_heads(announced, kNames));
  announced[2].rest = kLongestAddress + 1;
  const auto refused = check_heads(announced, kNames);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, AllOf(HasSubstr("PE 2 (on pear)"), HasSubstr("1048577 bytes")));
}

TEST(PeAddress, IsRefusedIfTruncatedOrTooLong) {
  auto packed = pack_address(some_address(), 77);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_FALSE(unpack_address(std::span(packed).first(size), 77)) << size;
  }
  packed.push_back({});
  EXPECT_FALSE(unpack_address(packed, 77));
}

TEST(PeAddress, IsRefusedWithALengthBeyondItsEnd) {
  auto packed = pack_address(some_address(), 77);
  packed[8 + 7] = std::byte{0xff};  // the highest byte of the length of the address
  EXPECT_FALSE(unpack_address(packed, 77));
}

TEST(PeAddress, IsRefusedFromAnotherStartOfTheJob) {
  const auto arrived = unpack_address(pack_address(some_address(), 76), 77);
  ASSERT_FALSE(arrived);
  EXPECT_THAT(arrived.error().text, HasSubstr("another start"));
}

TEST(PeAddress, NamesPesWithAnotherFormat) {
  EXPECT_TRUE(check_heads(heads(), kNames));
  auto changed = heads();
  changed[2].version = kAddressVersion + 1;
  EXPECT_THAT(check_heads(changed, kNames).error().text,
              HasSubstr("PE 2 (on pear) does not speak version " + std::to_string(kAddressVersion)));
  changed = heads();
  changed[0].magic = __builtin_bswap64(kAddressMagic);
  EXPECT_THAT(check_heads(changed, kNames).error().text, HasSubstr("PE 0 (on kiwi) does not speak"));
  changed = heads();
  changed[1].minor = 15;
  EXPECT_THAT(check_heads(changed, kNames).error().text,
              HasSubstr("PE 0 (on kiwi) has UCX 1.13, PE 1 (on plum) has UCX 1.15"));
}

TEST(PeAddress, NamesPesWithAnotherBoardSize) {
  std::vector<PeAddress> all(3, some_address());
  EXPECT_TRUE(check_segments(all, kNames));
  all[1].segments[2].bytes = 16;
  EXPECT_THAT(check_segments(all, kNames).error().text,
              AllOf(HasSubstr("board of PE 0 (on kiwi) takes 8 bytes"), HasSubstr("PE 1 (on plum) 16")));
}

/// Connects three PEs, whose settings `change` may change, and returns their errors.
std::vector<std::string> connect_with(const std::function<void(NetworkPe&, NetworkSettings&)>& change) {
  return with_network(
      3,
      [&](NetworkPe& me) {
        NetworkSettings settings = me.settings();
        change(me, settings);
        return me.connect(std::move(settings));
      },
      false);
}

TEST_F(NetworkStartTest, NamesPesWithoutUcx) {
  const auto texts = connect_with([](NetworkPe& me, NetworkSettings& settings) {
    if (me.pe == 1) {
      settings.library = "libucp-of-nobody.so.0";
    }
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("PE 1 (on kiwi) has no network"), HasSubstr("libucp-of-nobody.so.0"),
                                HasSubstr("libucx0"))));
  EXPECT_THAT(texts, Each(texts[0]));
}

TEST_F(NetworkStartTest, NamesPesWithAnotherLibraryInsteadOfUcx) {
  const auto texts = connect_with([](NetworkPe& me, NetworkSettings& settings) {
    if (me.pe == 2) {
      settings.library = "libm.so.6";
    }
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("PE 2 (on kiwi)"), HasSubstr("libm.so.6 cannot be used"))));
}

TEST_F(NetworkStartTest, NamesPesWhoseUcxCannotStart) {
  const auto texts = connect_with([](NetworkPe& me, NetworkSettings&) {
    if (me.pe == 1) {
      ::setenv("UCX_NET_DEVICES", "nothing0", 1);
    }
    if (me.pe == 1) {
      ::setenv("UCX_TLS", "tcp", 1);
    }
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("PE 1 (on kiwi)"), HasSubstr("UCX_NET_DEVICES"), HasSubstr("says: "))));
}

TEST_F(NetworkStartTest, NamesPesThatCannotStartThreads) {
  const auto texts = connect_with([](NetworkPe& me, NetworkSettings& settings) {
    const rlimit none{1, 1};
    const bool limited = me.pe != 1 || (::setrlimit(RLIMIT_NPROC, &none) == 0 &&
                                        (::geteuid() != 0 || ::setuid(65534) == 0));  // root has no limit
    if (!limited) {
      settings.library = "libskipped.so";
    }
  });
  if (texts[0].find("libskipped.so") != std::string::npos) {
    GTEST_SKIP() << "the number of processes cannot be limited";
  }
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("PE 1 (on kiwi)"), HasSubstr("UCX needs threads"), HasSubstr("ulimit -u"))));
}

/// PE 1 is in a network namespace of its own, in which not even the loopback is up.
TEST_F(NetworkStartTest, NamesPesWithoutANetworkDevice) {
  const auto texts = connect_with([](NetworkPe& me, NetworkSettings& settings) {
    if (me.pe == 1 && ::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      settings.library = "libskipped.so";
    }
  });
  if (texts[0].find("libskipped.so") != std::string::npos) {
    GTEST_SKIP() << "network namespaces are not available";
  }
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("PE 1 (on kiwi)"), HasSubstr("no network device"))));
}

TEST_F(NetworkStartTest, NamesPesWithAnotherHeapSize) {
  const auto texts = connect_with([](NetworkPe& me, NetworkSettings& settings) {
    if (me.pe == 2) {
      settings.segments[0] = settings.segments[0].first(8 << 20);
    }
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("symmetric heap of PE 0 (on kiwi) takes 16777216 bytes"),
                                HasSubstr("PE 2 (on kiwi) 8388608"), HasSubstr("SHMEM_SYMMETRIC_SIZE"))));
}

TEST_F(NetworkStartTest, NamesPesWithOtherGlobalVariables) {
  const auto texts = connect_with([](NetworkPe& me, NetworkSettings& settings) {
    if (me.pe == 1) {
      settings.segments.pop_back();
    }
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("global variables of PE 0 (on kiwi) takes 4096"),
                                HasSubstr("PE 1 (on kiwi) 0"), HasSubstr("the same program"))));
}

}  // namespace
}  // namespace shmem
