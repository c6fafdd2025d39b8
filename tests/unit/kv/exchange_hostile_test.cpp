// SPDX-License-Identifier: Apache-2.0
// Members of the same user that do not keep to the protocol: what they send and share harms no other member.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/unit/kv/exchange_impostor.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostileOwner, IsReadLikeAnyOtherIfItKeepsToTheProtocol) {
  Beside beside(101);
  beside.impostor.publish("key", {1, 0, 4096, 0});
  std::string bytes;
  EXPECT_EQ(beside.member->pull(beside.member->find("key"), bytes), 0);
}

TEST(HostileOwner, EntriesBeyondItsMemoryAreRefused) {
  Beside beside(102);
  const std::vector<BlockPlace> places{{1, 1, 4096, 0},           {1, 4096, 1, 0}, {1, UINT64_MAX - 1, 1, 0},
                                       {1, 0, UINT64_MAX / 2, 0}, {2, 0, 1, 0},    {UINT32_MAX, 0, 1, 0}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::string key = std::to_string(i);
    beside.impostor.publish(key, places[i]);
    auto block = beside.member->find(key);
    ASSERT_EQ(block.status, 0) << i;
    char room[8];
    void* const to = room;
    std::int32_t status = 0;
    EXPECT_EQ(shmemx_exchange_pull(beside.member->get(), &block, &to, 1, &status, nullptr), -EBADMSG) << i;
  }
  EXPECT_EQ(beside.member->stats().failed_corrupt, places.size());
  shmemx_exchange_member_t described{};
  ASSERT_EQ(shmemx_exchange_members(beside.member->get(), &described, 1), 1);
  EXPECT_EQ(described.refusals, places.size());
}

TEST(HostileOwner, ASizeThatChangesWithoutAnEpochIsRefused) {
  Beside beside(103);
  beside.impostor.publish("key", {1, 0, 8, 0});
  const auto block = beside.member->find("key");
  std::string bytes;
  EXPECT_EQ(beside.member->pull(block, bytes), 0);
  beside.impostor.entry(block.slot).bytes.store(4096);  // more than the reader has room for
  EXPECT_EQ(beside.member->pull(block, bytes), -EBADMSG);
}

/// What the first store to a page does, before it succeeds: the middle of a copy.
struct FirstStore {
  static inline Entry* entry = nullptr;
  static inline void* page = nullptr;
  static void handle(int /*signal*/) {
    entry->epoch.store(3);  // withdrawn
    ::mprotect(page, 4096, PROT_READ | PROT_WRITE);
  }
};

TEST(HostileOwner, ABlockThatIsWithdrawnWhileItIsCopiedIsStale) {
  Beside beside(104);
  beside.impostor.publish("key", {1, 0, 4096, 0});
  const auto block = beside.member->find("key");
  FirstStore::entry = &beside.impostor.entry(block.slot);
  FirstStore::page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(FirstStore::page, MAP_FAILED);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = &FirstStore::handle;
  ASSERT_EQ(::sigaction(SIGSEGV, &action, &before), 0);
  const int code = shmemx_exchange_pull(beside.member->get(), &block, &FirstStore::page, 1, nullptr, nullptr);
  ::sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(code, -ESTALE);
  ::munmap(FirstStore::page, 4096);
}

TEST(HostileOwner, WelcomesThatMakeNoSenseAreRefused) {
  const auto small = base::create_memfd("small", 4096);
  const auto huge_directory =
      base::create_memfd("huge", shmem::exchange::directory_size(kImpostorSlots));  // others can write it
  const auto large_board = LeaseBoard::create(shmem::exchange::kMostLeases);
  for (int variant = 0; variant < 9; ++variant) {
    Impostor impostor(exchange_name(110 + variant));
    const auto member = open_beside(exchange_name(110 + variant), [&] {
      impostor.reader();
      ChannelMessage welcome = impostor.welcome();
      std::vector<int> files = impostor.files();
      switch (variant) {
        case 0:
          welcome.number = 0;
          break;
        case 1:
          welcome.number = UINT32_MAX;
          break;
        case 2:
          welcome.quota = UINT32_MAX;
          break;
        case 3:
          files.clear();
          break;
        case 4:
          files = {files[0]};
          break;
        case 5:
          files = {small->get(), files[1]};
          break;
        case 6:
          files = {huge_directory->get(), files[1]};
          break;
        case 7:
          files = {files[0], large_board->file()};
          break;
        default:
          welcome.protocol = 1;
          break;
      }
      impostor.send(welcome, files);
      EXPECT_TRUE(is_closed(impostor.channel())) << variant;
    });
    EXPECT_EQ(member->stats().members, 0U) << variant;
    EXPECT_GE(member->stats().refused, 1U) << variant;
  }
}

TEST(HostileOwner, MessagesThatMakeNoSenseEndTheConnection) {
  const base::UniqueFd no_memory(::eventfd(0, EFD_CLOEXEC));
  for (int variant = 0; variant < 7; ++variant) {
    Beside beside(120 + variant);
    switch (variant) {
      case 0:
        beside.impostor.send(message_of(static_cast<Kind>(77), 0), {});
        break;
      case 1:
        beside.impostor.send(message_of(Kind::kRegion, 5), {});
        break;  // without a file
      case 2:
        ASSERT_EQ(::send(beside.impostor.channel().fd(), "short", 5, MSG_NOSIGNAL), 5);
        break;
      case 3:
        beside.impostor.send_region(1, beside.memory.get(), 0, 4096);
        break;  // a number that it has used
      case 4:
        beside.impostor.send(message_of(Kind::kGone, 1), {beside.memory.get()});
        break;
      case 5:
        for (std::uint32_t number = 2; number < 80; ++number) {
          ChannelMessage message = message_of(Kind::kRegion, number);
          message.bytes = 4096;
          const int file = no_memory.get();
          beside.impostor.channel().send(message, {&file, 1});
        }
        break;
      default:
        for (std::uint32_t number = 2; number < 80; ++number) {
          ChannelMessage message = message_of(Kind::kRegion, number);
          message.bytes = 4096;
          const int file = beside.memory.get();
          beside.impostor.channel().send(message, {&file, 1});
        }
    }
    EXPECT_TRUE(is_closed(beside.impostor.channel())) << variant;
  }
}

TEST(HostileOwner, MemoryThatIsNoneIsNotRead) {
  Beside beside(130);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  beside.impostor.send_region(2, pipe[0], 0, 4096);
  beside.impostor.send_region(3, beside.memory.get(), 0, 8192);
  beside.impostor.publish("pipe", {2, 0, 8, 0});
  beside.impostor.publish("beyond", {3, 4096, 8, 0});
  for (const char* key : {"pipe", "beyond"}) {
    std::string bytes;
    EXPECT_EQ(beside.member->pull(beside.member->find(key), bytes), -EBADMSG) << key;
  }
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(HostileOwner, OneThatDoesNotAnswerHoldsUpNobody) {
  const std::string name = exchange_name(131);
  const SeatSocket silent = *SeatSocket::open(name);  // as a member that is stopped
  Member owner(name, {.join_ms = 1});
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  Member reader(name, {.join_ms = 1});
  std::string bytes;
  EXPECT_EQ(reader.pull(reader.find_soon("key"), bytes), 0);
  EXPECT_EQ(reader.stats().members, 1U);
}

Channel connect_to(const Member&, const std::string& name, std::uint32_t seat) {
  auto channel = Channel::connect(name, seat);
  EXPECT_TRUE(channel);
  return *std::move(channel);
}

TEST(HostileReader, MessagesThatMakeNoSenseEndTheConnection) {
  const std::string name = exchange_name(140);
  Member owner(name);
  for (int variant = 0; variant < 3; ++variant) {
    Channel channel = connect_to(owner, name, 0);
    if (variant == 0) {
      ASSERT_EQ(channel.send(message_of(Kind::kGone, 1)), std::errc{});
    } else if (variant == 1) {
      ASSERT_EQ(::send(channel.fd(), "garbage", 7, MSG_NOSIGNAL), 7);
    } else {
      ASSERT_EQ(channel.send(message_of(Kind::kHello, UINT32_MAX)), std::errc{});
      ASSERT_EQ(channel.send(message_of(Kind::kHello, 1)), std::errc{});
    }
    EXPECT_TRUE(is_closed(channel)) << variant;
  }
}

TEST(HostileReader, ConnectionsThatSayNothingGiveWay) {
  const std::string name = exchange_name(141);
  Member owner(name);
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  std::vector<Channel> silent;
  for (int i = 0; i < 100; ++i) {
    auto channel = Channel::connect(name, 0);
    if (channel) {
      silent.push_back(*std::move(channel));
    } else {
      ::usleep(1000);  // it has not accepted the earlier ones yet
    }
  }
  EXPECT_GT(silent.size(), 50U);
  Member reader(name);
  std::string bytes;
  EXPECT_EQ(reader.pull(reader.find_soon("key"), bytes), 0);
}

TEST(HostileReader, ItsLeasesAreBoundedByTheOwner) {
  const std::string name = exchange_name(142);
  Member owner(name, {.lease_ms = 50});
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  Channel channel = connect_to(owner, name, 0);
  ASSERT_EQ(channel.send(message_of(Kind::kHello, 60)), std::errc{});
  // Memory comes before the directory that names it, so that no reader finds a block that it cannot read.
  std::optional<Received> region;
  ASSERT_TRUE(readable(channel.fd()));
  ASSERT_EQ(channel.receive(region), std::errc{});
  ASSERT_TRUE(region && region->message.kind == Kind::kRegion);
  std::optional<Received> welcome;
  ASSERT_TRUE(readable(channel.fd()));
  ASSERT_EQ(channel.receive(welcome), std::errc{});
  ASSERT_TRUE(welcome && welcome->files[1]);
  const auto words = base::Mapping::share(welcome->files[1].get(), shmem::exchange::lease_bytes(64));
  // Leases of everything, for ever.
  const std::uint64_t forever = shmem::exchange::lease_of(0, shmem::exchange::lease_clock() + 2'000'000'000);
  for (std::size_t i = 0; i < 64; ++i) {
    reinterpret_cast<shmem::exchange::LeaseWord*>(words->data())[i].store(forever);
  }
  EXPECT_EQ(owner.withdraw("key"), -EBUSY);
  EXPECT_EQ(owner.withdraw("key", 50 * kSecond), 0);
  EXPECT_EQ(owner.stats().leases_expired, 1U);
  // Neither can it shrink them below the owner's feet, nor write the directory.
  EXPECT_NE(::ftruncate(welcome->files[1].get(), 0), 0);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, welcome->files[0].get(), 0), MAP_FAILED);
  EXPECT_NE(::pwrite(welcome->files[0].get(), "x", 1, 0), 1);
}

TEST(HostileReader, OneThatReadsNoMessagesLosesItsConnection) {
  const std::string name = exchange_name(143);
  Member owner(name);
  Channel channel = connect_to(owner, name, 0);
  ASSERT_EQ(channel.send(message_of(Kind::kHello, 60)), std::errc{});
  ASSERT_TRUE(readable(channel.fd()));
  std::uint64_t readers = owner.stats().readers;
  for (int i = 0; i < 20'000 && readers > 0; ++i) {
    shmemx_memory_t memory{.address = nullptr, .bytes = 4096, .fd = -1, .offset = 0};
    std::uint32_t region = 0;
    ASSERT_EQ(shmemx_exchange_register(owner.get(), &memory, &region), 0) << shmemx_error_text();
    ASSERT_EQ(shmemx_exchange_unregister(owner.get(), region), 0);
    readers = owner.stats().readers;
  }
  EXPECT_EQ(readers, 0U);
}

/// The library's messages to people.
class Messages {
 public:
  Messages() {
    texts().clear();
    shmemx_set_logger([](int level, const char* text) {
      const std::lock_guard lock(mutex());
      texts().push_back(std::to_string(level) + " " + text);
    });
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  ~Messages() { shmemx_set_logger(nullptr); }
  static std::vector<std::string> get() {
    const std::lock_guard lock(mutex());
    return texts();
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<std::string>& texts() {
    static std::vector<std::string> all;
    return all;
  }
};

/// The warning that names this process.
std::string version_warning(const std::string& exchange, const std::string& where) {
  return std::to_string(SHMEMX_LOG_WARN) + " shmem: exchange " + exchange + ": the member in process " +
         std::to_string(::getpid()) + where +
         " has another version of libshmem: it and this member do not see each other; use the same version in all "
         "members";
}

TEST(OtherVersion, OfAnOwnerIsToldToPeopleOnce) {
  const std::string name = exchange_name(160);
  const Messages messages;
  Impostor impostor(name);
  const auto member = open_beside(name, [&] {
    for (int attempt = 0; attempt < 3; ++attempt) {  // it tries again: another member may come to the seat
      impostor.reader();
      ChannelMessage welcome = impostor.welcome();
      welcome.protocol = shmem::exchange::kProtocol + 1;
      impostor.send(welcome, impostor.files());
      EXPECT_TRUE(is_closed(impostor.channel()));
    }
  });
  EXPECT_EQ(member->stats().members, 0U);
  EXPECT_GE(member->stats().refused, 3U);
  member->close();
  EXPECT_THAT(messages.get(), ElementsAre(version_warning(name, " on seat 0")));
}

TEST(OtherVersion, OfAReaderIsToldToPeopleAndToTheReader) {
  const std::string name = exchange_name(161);
  const Messages messages;
  Member owner(name);
  for (int attempt = 0; attempt < 3; ++attempt) {
    Channel channel = connect_to(owner, name, 0);
    // The messages of another version may be longer.
    std::array<std::byte, sizeof(ChannelMessage) + 8> hello{};
    const std::uint32_t protocol = shmem::exchange::kProtocol - 1;
    std::memcpy(hello.data(), &protocol, sizeof protocol);
    ASSERT_EQ(::send(channel.fd(), hello.data(), hello.size(), MSG_NOSIGNAL), static_cast<ssize_t>(hello.size()));
    std::uint32_t answered = 0;
    ASSERT_TRUE(readable(channel.fd()));
    ASSERT_EQ(::recv(channel.fd(), &answered, sizeof answered, 0), static_cast<ssize_t>(sizeof answered));
    EXPECT_EQ(answered, shmem::exchange::kProtocol);
    EXPECT_TRUE(is_closed(channel));
  }
  EXPECT_EQ(owner.stats().readers, 0U);
  for (int i = 0; i < 5'000 && owner.stats().refused < 3; ++i) {
    ::usleep(1000);  // it closes the connection before it counts
  }
  EXPECT_EQ(owner.stats().refused, 3U);
  owner.close();
  EXPECT_THAT(messages.get(), ElementsAre(version_warning(name, "")));
}

TEST(OtherVersion, IsNotWhatGarbageIsTakenFor) {
  const std::string name = exchange_name(162);
  const Messages messages;
  Member owner(name);
  Channel channel = connect_to(owner, name, 0);
  ChannelMessage hello = message_of(Kind::kHello, 60);
  hello.protocol = 0x2f202f47;
  ASSERT_EQ(channel.send(hello), std::errc{});
  EXPECT_TRUE(is_closed(channel));
  owner.close();
  EXPECT_THAT(messages.get(), IsEmpty());
}

}  // namespace
