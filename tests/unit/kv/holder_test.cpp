// SPDX-License-Identifier: Apache-2.0
// The holder of an exchange: what engines put, find and pull.
#include "tests/unit/kv/holder_fixture.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/unit/kv/http_client.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about
using ::testing::HasSubstr;

TEST(ExchangeHolder, HasTheBlocksOfEnginesThatHaveEnded) {
  const std::string name = exchange_name(300);
  const Holder holder(name);
  {
    Engine engine(name);
    EXPECT_EQ(engine.put("key", "the bytes"), 0) << engine.error();
  }
  Engine later(name);
  EXPECT_EQ(later.get_block("key"), "the bytes");
  EXPECT_EQ(later.find("key", 2).status, -EPROTOTYPE) << "the layout is checked";
  EXPECT_EQ(later.find("other").status, -ENOENT);
  const auto stats = later.holder_stats();
  EXPECT_EQ(stats.blocks, 1U);
  EXPECT_EQ(stats.bytes, 9U);
  EXPECT_EQ(stats.stored, 1U);
  EXPECT_EQ(stats.writing_bytes, 0U);
  EXPECT_EQ(stats.capacity, 4 * kMiB);
  for (int i = 0; i < 10'000 && later.holder_stats().engines != 1; ++i) {
    ::usleep(1000);
  }
  EXPECT_EQ(later.holder_stats().engines, 1U);
}

TEST(ExchangeHolder, StoresEqualKeysOnce) {
  const std::string name = exchange_name(301);
  const Holder holder(name);
  Engine one(name);
  Engine other(name);
  const std::string bytes = block_of('a', 10'000);
  EXPECT_EQ(one.put("key", bytes), 0);
  EXPECT_EQ(other.put("key", bytes), -EEXIST);
  EXPECT_EQ(other.holder_stats().blocks, 1U);
  EXPECT_EQ(other.put("key", bytes, 2), 0) << "the same key of another layout is another block";
  EXPECT_EQ(other.put("key", "another size"), -EMSGSIZE);
  EXPECT_EQ(one.holder_stats().blocks, 2U);
  EXPECT_EQ(one.get_block("key", 1), bytes);
  EXPECT_EQ(one.get_block("key", 2), bytes);
  // Two of one call.
  std::vector<shmemx_exchange_put_t> puts(2);
  const std::string key = "twice";
  for (auto& put : puts) {
    put = {.key = key_of(key), .source = bytes.data(), .bytes = bytes.size(), .layout = 1, .status = 1, .flags = 0};
  }
  EXPECT_EQ(shmemx_exchange_put(one.get(), puts.data(), puts.size()), 2);
  EXPECT_EQ(puts[0].status, 0);
  EXPECT_EQ(puts[1].status, -EEXIST);
}

/// Of sizes around those of pages, of messages and of the staging memory, and many at once.
TEST(ExchangeHolder, TakesBlocksOfAllSizes) {
  const std::string name = exchange_name(302);
  const Holder holder(name, {.bytes = 64 * kMiB});
  Engine engine(name);
  std::vector<std::string> keys;
  std::vector<std::string> blocks;
  for (const std::size_t bytes : {1UL, 63UL, 64UL, 4095UL, 4096UL, 4097UL, 1UL << 20, (1UL << 20) + 1, 5'000'000UL}) {
    for (int i = 0; i < 3; ++i) {
      keys.push_back("block " + std::to_string(bytes) + "/" + std::to_string(i));
      blocks.emplace_back();
      for (std::size_t at = 0; at < bytes; ++at) {
        blocks.back().push_back(static_cast<char>(at * 7 + bytes + static_cast<std::size_t>(i)));
      }
    }
  }
  for (int i = 0; i < 300; ++i) {  // more than a message has
    keys.push_back("small " + std::to_string(i));
    blocks.push_back(block_of(static_cast<char>('a' + i % 26), 100));
  }
  std::vector<shmemx_exchange_put_t> puts;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    puts.push_back({.key = key_of(keys[i]),
                    .source = blocks[i].data(),
                    .bytes = blocks[i].size(),
                    .layout = 1,
                    .status = 1,
                    .flags = 0});
  }
  int stored = shmemx_exchange_put(engine.get(), puts.data(), puts.size());
  for (auto& put : puts) {
    for (int i = 0; i < 20 && put.status == -ESTALE; ++i) {  // as Engine::put()
      stored += shmemx_exchange_put(engine.get(), &put, 1);
    }
  }
  EXPECT_EQ(stored, static_cast<int>(puts.size())) << engine.error();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(puts[i].status, 0) << keys[i];
    EXPECT_EQ(engine.get_block(keys[i]), blocks[i]) << keys[i];
  }
  EXPECT_EQ(engine.put("too large", block_of('x', 16 * kMiB + 1)), -EMSGSIZE);
  EXPECT_EQ(engine.holder_stats().writing_bytes, 0U);
}

TEST(ExchangeHolder, EvictsWhatWasNotUsedForTheLongestTime) {
  const std::string name = exchange_name(303);
  const Holder holder(name);
  Engine engine(name);
  Engine reader(name);
  constexpr std::size_t kBlock = 128 * 1024;
  for (int i = 0; i < 32; ++i) {  // as many as there is room for
    if (i == 31) {
      // The holder does not know in which order a block was put and used between two of its looks, 100 ms apart.
      std::this_thread::sleep_for(std::chrono::milliseconds(120));
    }
    ASSERT_EQ(engine.put(std::to_string(i), block_of('a', kBlock)), 0);
  }
  EXPECT_EQ(engine.holder_stats().evicted, 0U);
  // Those that are found, pulled or put count as used.
  EXPECT_TRUE(reader.has("0"));
  EXPECT_NE(reader.get_block("1"), "");
  EXPECT_EQ(engine.put("2", block_of('a', kBlock)), -EEXIST);
  for (int i = 32; i < 36; ++i) {
    ASSERT_EQ(engine.put(std::to_string(i), block_of('a', kBlock)), 0);
  }
  EXPECT_EQ(engine.holder_stats().evicted, 4U);
  for (int i = 0; i < 36; ++i) {
    EXPECT_EQ(engine.find(std::to_string(i)).status, i >= 3 && i < 7 ? -ENOENT : 0) << i;
  }
}

/// The holder looks ten times a second at what was read: reads before such a look do not count as later than puts.
TEST(ExchangeHolder, KeepsWhatWasPutAfterAllElseWasRead) {
  const std::string name = exchange_name(315);
  const Holder holder(name);
  Engine engine(name);
  constexpr std::size_t kBlock = 128 * 1024;
  for (int i = 0; i < 31; ++i) {
    ASSERT_EQ(engine.put(std::to_string(i), block_of('a', kBlock)), 0);
  }
  for (int i = 0; i < 31; ++i) {
    EXPECT_TRUE(engine.has(std::to_string(i)));
  }
  ::usleep(200'000);
  ASSERT_EQ(engine.put("new", block_of('n', kBlock)), 0);
  ::usleep(200'000);
  ASSERT_EQ(engine.put("newer", block_of('n', kBlock)), 0);
  EXPECT_TRUE(engine.has("new"));
  EXPECT_FALSE(engine.has("0"));
}

/// A large block in place of small ones, which are not in a row in the order of use.
TEST(ExchangeHolder, MakesRoomForALargeBlock) {
  const std::string name = exchange_name(304);
  const Holder holder(name);
  Engine engine(name);
  constexpr int kBlocks = 256;
  for (int i = 0; i < kBlocks; ++i) {
    ASSERT_EQ(engine.put(std::to_string(i), block_of('a', 16'384)), 0);
  }
  for (int i = 0; i < kBlocks; i += 2) {
    engine.find(std::to_string(i));
  }
  EXPECT_EQ(engine.put("large", block_of('b', kMiB)), 0);
  EXPECT_EQ(engine.get_block("large"), block_of('b', kMiB));
  // Half of what it takes was not used; further blocks go until there is room in a row.
  EXPECT_LE(engine.holder_stats().evicted, 192U);
  EXPECT_EQ(engine.put("larger", block_of('c', kMiB)), 0);
  EXPECT_TRUE(engine.has("large")) << "neighbours that were used lately stay";
}

TEST(ExchangeHolder, DoesNotUseMemoryThatIsRead) {
  const std::string name = exchange_name(305);
  const Holder holder(name, {.bytes = kMiB, .lease_ms = 60'000});
  Engine engine(name);
  Engine reader(name);
  constexpr std::size_t kBlock = 256 * 1024;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(engine.put(std::to_string(i), block_of(static_cast<char>('a' + i), kBlock)), 0);
  }
  std::vector<shmemx_exchange_block_t> leased;
  for (int i = 0; i < 4; ++i) {
    leased.push_back(reader.find(std::to_string(i), 1, 60'000));
  }
  EXPECT_EQ(engine.put("more", block_of('x', kBlock)), -ENOSPC);
  EXPECT_EQ(engine.discard("3"), 0);
  EXPECT_FALSE(engine.has("3"));
  EXPECT_EQ(engine.holder_stats().leaving_bytes, kBlock);
  EXPECT_EQ(engine.put("3", block_of('x', kBlock)), -ENOSPC);
  std::string bytes;
  EXPECT_EQ(reader.pull(leased[0], bytes), 0);
  EXPECT_EQ(bytes, block_of('a', kBlock));
  for (auto& block : leased) {
    reader.release(block);
  }
  EXPECT_EQ(engine.put("more", block_of('x', kBlock)), 0);
  EXPECT_EQ(reader.pull(leased[3], bytes), -ESTALE) << "the memory of what was discarded is used again";
}

TEST(ExchangeHolder, LimitsTenants) {
  const std::string name = exchange_name(306);
  const Holder holder(name, {.tenants = {{"small", kMiB}}});
  Engine large(name, "large");
  Engine small(name, "small");
  constexpr std::size_t kBlock = 256 * 1024;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(large.put("large " + std::to_string(i), block_of('l', kBlock)), 0);
    ASSERT_EQ(small.put("small " + std::to_string(i), block_of('s', kBlock)), 0);
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(large.has("large " + std::to_string(i))) << i;
    EXPECT_EQ(large.has("small " + std::to_string(i)), i >= 4) << i;
  }
  EXPECT_EQ(small.put("huge", block_of('s', kMiB + 1)), -EMSGSIZE);
  EXPECT_EQ(small.put("large 0", block_of('l', kBlock)), -EEXIST) << "it is stored once for all";
  EXPECT_EQ(shmemx_exchange_discard_all(small.get()), 0);
  EXPECT_FALSE(small.has("small 7"));
  EXPECT_TRUE(small.has("large 7"));
}

TEST(ExchangeHolder, HasAsManyTenantsAsThereCanBe) {
  const std::string name = exchange_name(316);
  const Holder holder(name, {.tenants = {{"", kMiB}}});
  Engine engine(name);
  constexpr std::size_t kBlock = 256 * 1024;
  for (int i = 0; i < 300; ++i) {
    const std::string tenant = "tenant-" + std::to_string(i);
    ASSERT_EQ(shmemx_exchange_use_holder(engine.get(), tenant.c_str(), kLongMs), 0);
    ASSERT_EQ(engine.put(tenant, block_of('a', kBlock)), 0) << i;
  }
  // The last ones share the limit of those without a name.
  int held = 0;
  for (int i = 255; i < 300; ++i) {
    held += engine.has("tenant-" + std::to_string(i)) ? 1 : 0;
  }
  EXPECT_EQ(held, 4);
}

TEST(ExchangeHolder, KeepsPinnedBlocks) {
  const std::string name = exchange_name(307);
  const Holder holder(name);
  constexpr std::size_t kBlock = 512 * 1024;
  {
    Engine engine(name);
    EXPECT_EQ(engine.put("pinned", block_of('p', kBlock), 1, SHMEMX_EXCHANGE_PIN), 0);
    EXPECT_EQ(engine.put("later", block_of('p', kBlock)), 0);
    EXPECT_EQ(engine.pin("later", true), 0);
    EXPECT_EQ(engine.pin("none", true), -ENOENT);
  }
  Engine engine(name);
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(engine.put(std::to_string(i), block_of('a', kBlock)), 0);
  }
  EXPECT_TRUE(engine.has("pinned"));
  EXPECT_TRUE(engine.has("later"));
  EXPECT_EQ(engine.holder_stats().pinned_bytes, 2 * kBlock);
  EXPECT_EQ(engine.discard("pinned"), -EBUSY);
  // No more than half of the memory can be pinned.
  EXPECT_EQ(engine.pin("15", true), 0);
  EXPECT_EQ(engine.pin("14", true), 0);
  EXPECT_EQ(engine.pin("13", true), -EDQUOT);
  EXPECT_EQ(engine.put("further", block_of('a', kBlock), 1, SHMEMX_EXCHANGE_PIN), -EDQUOT);
  EXPECT_EQ(engine.pin("pinned", false), 0);
  EXPECT_EQ(engine.discard("pinned"), 0);
  EXPECT_EQ(shmemx_exchange_discard_all(engine.get()), 0);
  EXPECT_FALSE(engine.has("12"));
  EXPECT_TRUE(engine.has("15"));
}

TEST(ExchangeHolder, DiscardsBlocks) {
  const std::string name = exchange_name(308);
  const Holder holder(name);
  Engine engine(name);
  for (const std::uint64_t layout : {1, 2, 3}) {
    ASSERT_EQ(engine.put("key", "bytes", layout), 0);
  }
  EXPECT_EQ(engine.discard("key", 2), 0);
  EXPECT_EQ(engine.discard("key", 2), -ENOENT);
  EXPECT_TRUE(engine.has("key", 3));
  EXPECT_EQ(engine.discard("key", 0), 0);
  EXPECT_FALSE(engine.has("key", 0));
  EXPECT_EQ(engine.put("key", "other bytes", 1), 0);
  EXPECT_EQ(engine.get_block("key"), "other bytes");
}

TEST(ExchangeHolder, TakesAsManyBlocksAsItsDirectory) {
  const std::string name = exchange_name(309);
  const Holder holder(name, {.blocks = 8});
  Engine engine(name);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(engine.put(std::to_string(i), "bytes"), 0) << i;
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(engine.has(std::to_string(i)), i >= 12) << i;
  }
}

TEST(ExchangeHolder, IsOneOfItsNameAndPlace) {
  const test_support::TempDir dir;
  const std::string folder = dir.file("exchanges");
  for (const char* const directory : {"", folder.c_str()}) {
    const std::string name = exchange_name(310);
    shmemx_exchange_t* second = nullptr;
    {
      const Holder holder(name, {.directory = directory});
      EXPECT_EQ(Holder::open(name, {.directory = directory}, second), -EADDRINUSE);
      EXPECT_THAT(shmemx_error_text(),
                  HasSubstr("cannot hold exchange " + name + ": another process holds it already"));
      EXPECT_EQ(second, nullptr);
      const Holder other(exchange_name(311), {.directory = directory});
    }
    const Holder next(name, {.directory = directory});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(ExchangeHolder, RefusesBadArguments) {
  const std::string name = exchange_name(312);
  shmemx_exchange_t* exchange = nullptr;
  EXPECT_EQ(Holder::open(std::string(49, 'n'), {}, exchange), -EINVAL);
  EXPECT_THAT(shmemx_error_text(), HasSubstr("this name of 49 bytes"));
  EXPECT_EQ(Holder::open(name, {.bytes = 4096}, exchange), -EINVAL);
  EXPECT_THAT(shmemx_error_text(), HasSubstr("4 KiB of memory for blocks: the least is 1 MiB"));
  EXPECT_EQ(Holder::open(name, {.tenants = {{"a", 8 * kMiB}}}, exchange), -EINVAL);
  EXPECT_THAT(shmemx_error_text(), HasSubstr("tenant \"a\" may have 8 MiB of 4 MiB"));
  EXPECT_EQ(Holder::open(name, {.tenants = {{"a", 1}, {"a", 1}}}, exchange), -EINVAL);
  EXPECT_EQ(Holder::open(name, {.tenants = {{"a b", 1}}}, exchange), -EINVAL);
  EXPECT_EQ(Holder::open(name, {.bytes = std::uint64_t{1} << 50}, exchange), -ENOMEM);
  EXPECT_THAT(shmemx_error_text(), HasSubstr("1048576 GiB for blocks is more than the memory"));
  EXPECT_EQ(shmemx_exchange_hold(name.c_str(), nullptr, nullptr, &exchange), -EINVAL);
  EXPECT_EQ(exchange, nullptr);

  const Holder holder(name);
  EXPECT_EQ(shmemx_exchange_use_holder(holder.get(), "a b", 0), -EINVAL);
  EXPECT_EQ(shmemx_exchange_use_holder(holder.get(), "", 60'001), -EINVAL);
  Engine engine(name);
  EXPECT_EQ(engine.put("", "bytes"), -EINVAL);
  EXPECT_EQ(engine.put(std::string(129, 'k'), "bytes"), -EINVAL);
  EXPECT_EQ(engine.put("key", ""), -EINVAL);
  EXPECT_EQ(engine.put("key", "bytes", 1, 2), -EINVAL);
  EXPECT_EQ(engine.discard(""), -EINVAL);
  EXPECT_EQ(shmemx_exchange_put(engine.get(), nullptr, 1), -EINVAL);
  EXPECT_EQ(shmemx_exchange_put(engine.get(), nullptr, 0), 0);
  // The holder itself does not publish otherwise.
  const std::string key = "key";
  const auto named = key_of(key);
  shmemx_exchange_entry_t entry{.key = named, .region = 1, .status = 0, .offset = 0, .bytes = 1, .layout = 0};
  EXPECT_EQ(shmemx_exchange_publish(holder.get(), &entry, 1), 0);
  EXPECT_EQ(entry.status, -EPERM);
  EXPECT_EQ(shmemx_exchange_withdraw(holder.get(), &named, 1, 0), -EPERM);
}

TEST(ExchangeHolder, SaysHowMuchAddressSpaceIsMissing) {
  if (test_support::kSanitized || test_support::kEmulated) {
    GTEST_SKIP() << "a sanitizer has more address space, and qemu-user does not limit it";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit few{.rlim_cur = std::uint64_t{1} << 32, .rlim_max = std::uint64_t{1} << 32};
    shmemx_exchange_t* exchange = nullptr;
    const bool good = ::setrlimit(RLIMIT_AS, &few) == 0 &&
                      Holder::open(exchange_name(313), {.bytes = std::uint64_t{5} << 30}, exchange) == -ENOMEM &&
                      std::string(shmemx_error_text()).find("ulimit -v") != std::string::npos;
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ExchangeHolder, HasMetrics) {
  const std::string name = exchange_name(314);
  const Holder holder(name, {.tenants = {{"a", kMiB}}, .metrics = "0"});
  Engine engine(name, "a");
  ASSERT_EQ(engine.put("key", "bytes"), 0);
  engine.holder_stats();  // its next turn: what the put has changed is told by now
  shmemx_exchange_stats_t stats{};
  ASSERT_EQ(shmemx_exchange_stats(holder.get(), &stats), 0);
  const std::string page = ask(stats.metrics_port, "GET /metrics HTTP/1.0\r\n\r\n");
  const std::string label = "{exchange=\"" + name + "\"";
  EXPECT_THAT(page, HasSubstr("shmem_exchange_holder_capacity_bytes" + label + "} 4194304\n"));
  EXPECT_THAT(page, HasSubstr("shmem_exchange_holder_stored_blocks_total" + label + "} 1\n"));
  EXPECT_THAT(page, HasSubstr("shmem_exchange_holder_tenant_bytes" + label + ",tenant=\"a\"} 64\n"));
  EXPECT_THAT(page, HasSubstr("shmem_exchange_holder_tenant_limit_bytes" + label + ",tenant=\"a\"} 1048576\n"));
  EXPECT_TRUE(page.ends_with("# EOF\n"));
}

}  // namespace
