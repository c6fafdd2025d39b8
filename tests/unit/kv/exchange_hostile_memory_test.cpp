// SPDX-License-Identifier: Apache-2.0
// Memory that members of the same user share, or receive, without keeping to the protocol.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <thread>

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

/// The file of the only region of a member, as a reader receives it.
base::UniqueFd received_file(const std::string& exchange) {
  auto channel = Channel::connect(exchange, 0);
  EXPECT_TRUE(channel && channel->send(message_of(Kind::kHello, 60)) == std::errc{});
  std::optional<Received> region;
  EXPECT_TRUE(readable(channel->fd()));
  EXPECT_EQ(channel->receive(region), std::errc{});
  EXPECT_TRUE(region && region->message.kind == Kind::kRegion);
  return region ? std::move(region->files[0]) : base::UniqueFd();
}

/// Memory that a caller may have. Null: this machine has none of the kind.
base::UniqueFd callers_memory(const std::string& kind) {
  base::UniqueFd file;
  if (kind == "/dev/shm") {
    file.reset(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  } else {
    file.reset(::memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING | (kind == "huge pages" ? MFD_HUGETLB : 0U)));
  }
  EXPECT_TRUE(file || kind != "memfd");
  if (file && ::ftruncate(file.get(), off_t{2} << 20) != 0) {
    return base::UniqueFd();
  }
  if (kind == "sealed memfd") {
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  }
  return file;
}

TEST(HostileMemory, AReaderGetsNothingThroughWhichItCouldWrite) {
  int number = 173;
  for (const std::string kind : {"memfd", "sealed memfd", "/dev/shm", "huge pages"}) {
    const base::UniqueFd mine = callers_memory(kind);
    if (!mine) {
      continue;
    }
    const std::string name = exchange_name(number++);
    Member owner(name);
    shmemx_memory_t memory{.address = nullptr, .bytes = std::size_t{2} << 20, .fd = mine.get(), .offset = 0};
    std::uint32_t region = 0;
    ASSERT_EQ(shmemx_exchange_register(owner.get(), &memory, &region), 0) << kind << ": " << shmemx_error_text();
    const base::UniqueFd theirs = received_file(name);
    ASSERT_TRUE(theirs) << kind;
    EXPECT_NE(::ftruncate(theirs.get(), 0), 0) << kind;
    EXPECT_LT(::pwrite(theirs.get(), "x", 1, 0), 0) << kind;
    EXPECT_LT(::fcntl(theirs.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0) << kind;
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, theirs.get(), 0), MAP_FAILED) << kind;
    // Readers that keep to the protocol read it.
    const std::string key = "key";
    shmemx_exchange_entry_t entry{
        .key = key_of(key), .region = region, .status = 1, .offset = 4, .bytes = 8, .layout = 0};
    ASSERT_EQ(shmemx_exchange_publish(owner.get(), &entry, 1), 1);
    Member reader(name);
    std::string bytes;
    EXPECT_EQ(reader.pull(reader.find_soon("key"), bytes), 0) << kind;
  }
}

constexpr std::size_t kPage = 4096;
char* locked_pages = nullptr;  // no thread can write there before unlock
std::atomic<int> stopped{0};   // threads that wait to
std::atomic<bool> unlock{false};

void wait_to_write(int /*signal*/, siginfo_t* /*info*/, void* /*context*/) {
  ++stopped;
  while (!unlock) {
    ::usleep(1000);
  }
  ::mprotect(locked_pages, 2 * kPage, PROT_READ | PROT_WRITE);
}

/// Two pulls stop in the middle, and have all words of this reader for pulls. A third waits for one of them to end, and
/// must let them run if it has a higher priority and their processor: it sleeps, and does not only yield.
TEST(HostileMemory, APullThatWaitsForOthersSleeps) {
  constexpr std::size_t kBlocks = 32;  // what a pull reads at once
  const std::string name = exchange_name(179);
  stopped = 0;
  unlock = false;
  Member owner(name);
  owner.make_memory(kPage);
  ASSERT_EQ(owner.publish("key", 0, 64), 0);
  Member reader(name);
  const std::vector<shmemx_exchange_block_t> blocks(kBlocks, reader.find_soon("key"));
  locked_pages = static_cast<char*>(::mmap(nullptr, 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  struct sigaction before {};
  struct sigaction waits {};
  waits.sa_sigaction = wait_to_write;
  waits.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGSEGV, &waits, &before), 0);
  std::vector<std::thread> pulls;
  for (int i = 0; i < 2; ++i) {
    pulls.emplace_back([&, i] {
      std::vector<void*> to(kBlocks, locked_pages + static_cast<std::size_t>(i) * kPage);
      EXPECT_EQ(shmemx_exchange_pull(reader.get(), blocks.data(), to.data(), kBlocks, nullptr, nullptr), 0);
    });
  }
  const auto soon = [](const auto& condition) {
    for (int i = 0; i < 20'000 && !condition(); ++i) {
      ::usleep(1000);
    }
    return condition();
  };
  EXPECT_TRUE(soon([] { return stopped == 2; }));
  std::atomic<pid_t> third{0};
  pulls.emplace_back([&] {
    third = ::gettid();
    std::string bytes;
    EXPECT_EQ(reader.pull(blocks[0], bytes), 0);
  });
  // It gives up its processor of its own accord, which it does not by a yield.
  const auto sleeps = [&] {
    std::ifstream status("/proc/self/task/" + std::to_string(third) + "/status");
    std::string word;
    while (status >> word && word != "voluntary_ctxt_switches:") {
    }
    int count = 0;
    status >> count;
    return count;
  };
  EXPECT_TRUE(soon([&] { return third != 0 && sleeps() >= 100; }));
  unlock = true;
  for (std::thread& pull : pulls) {
    pull.join();
  }
  ASSERT_EQ(::sigaction(SIGSEGV, &before, nullptr), 0);
  ::munmap(locked_pages, 2 * kPage);
}

}  // namespace
