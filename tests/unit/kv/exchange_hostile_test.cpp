// SPDX-License-Identifier: Apache-2.0
// Members of the same user that do not keep to the protocol: what they send and share harms no other member.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/memfd.hpp"
#include "kv/service/channel.hpp"
#include "kv/service/directory_writer.hpp"
#include "kv/service/leases.hpp"
#include "tests/unit/kv/exchange_fixture.hpp"

namespace {

using exchange_test::exchange_name;
using exchange_test::kSecond;
using exchange_test::Member;
using shmem::exchange::Channel;
using shmem::exchange::Entry;
using shmem::exchange::Key;
using shmem::exchange::Kind;
using shmem::exchange::LeaseBoard;
using shmem::exchange::Listener;
using shmem::exchange::Message;
using shmem::exchange::Place;
using shmem::exchange::Received;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kId = 666;
constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kQuota = 4;

bool readable(int fd, int limit_ms = 5'000) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, limit_ms) == 1;
}

/// True once the other end has closed the connection.
bool is_closed(Channel& channel) {
  std::optional<Received> received;
  while (readable(channel.fd())) {
    if (channel.receive(received) == std::errc::connection_reset) {
      return true;
    }
  }
  return false;
}

Message message_of(Kind kind, std::uint32_t number) {
  Message message;
  message.kind = kind;
  message.member = kId;
  message.number = number;
  return message;
}

/// A directory that is sealed as it should be, with whatever a test writes into it.
class RawDirectory {
 public:
  RawDirectory()
      : file_(*base::create_memfd("directory", kSize, base::MemfdPages::kUsual, base::MemfdSeals::kOpen)),
        memory_(*base::Mapping::share(file_.get(), kSize)) {
    EXPECT_TRUE(base::keep_pages(file_.get()));
  }
  [[nodiscard]] int file() const { return file_.get(); }
  Entry& entry(std::uint32_t slot) {
    return reinterpret_cast<Entry*>(memory_.data() + shmem::exchange::entries_offset(kSlots))[slot];
  }
  void publish(const Key& key, const Place& place) {
    Entry& mine = entry(used_);
    mine.hash.store(key.hash());
    mine.region_and_key_bytes.store(std::uint64_t{place.region} << 32 | key.bytes());
    mine.offset.store(place.offset);
    mine.bytes.store(place.bytes);
    for (std::size_t i = 0; i < key.used_words(); ++i) {
      mine.key[i].store(key.word(i));
    }
    mine.epoch.store(2);
    auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.data() + shmem::exchange::kIndexOffset);
    std::size_t at = key.hash();
    while (words[at % kWords].load() != shmem::exchange::kEmpty) {
      ++at;
    }
    words[at % kWords].store(shmem::exchange::index_word(key.hash(), used_++));
  }

 private:
  static constexpr std::size_t kSize = shmem::exchange::directory_size(kSlots);
  static constexpr std::size_t kWords = shmem::exchange::index_words(kSlots);
  base::UniqueFd file_;
  base::Mapping memory_;
  std::uint32_t used_ = 0;
};

/// A seat whose member does only what a test says.
class Impostor {
 public:
  explicit Impostor(const std::string& name) : listener_(*Listener::open(name)), board_(*LeaseBoard::create(kQuota)) {}

  /// The connection of the next member that wants to read, whose hello has come.
  Channel& reader() {
    std::uint64_t refused = 0;
    EXPECT_TRUE(readable(listener_.fd()));
    reader_ = *listener_.accept(refused);
    std::optional<Received> hello;
    EXPECT_TRUE(readable(reader_.fd()));
    EXPECT_EQ(reader_.receive(hello), std::errc{});
    EXPECT_TRUE(hello && hello->message.kind == Kind::kHello);
    return reader_;
  }
  [[nodiscard]] Message welcome() const {
    Message message = message_of(Kind::kWelcome, kSlots);
    message.quota = kQuota;
    message.lease_ms = 1000;
    return message;
  }
  void send(const Message& message, std::vector<int> files) { EXPECT_EQ(reader_.send(message, files), std::errc{}); }
  void send_region(std::uint32_t number, int file, std::uint64_t offset, std::uint64_t bytes) {
    Message message = message_of(Kind::kRegion, number);
    message.offset = offset;
    message.bytes = bytes;
    send(message, {file});
  }
  [[nodiscard]] std::vector<int> files() const { return {directory_.file(), board_.file()}; }
  Channel& channel() { return reader_; }
  [[nodiscard]] std::uint32_t seat() const { return listener_.seat(); }

  Entry& entry(std::uint32_t slot) { return directory_.entry(slot); }
  void publish(const std::string& key, const Place& place) {
    directory_.publish(*Key::make(key.data(), key.size()), place);
  }

 private:
  Listener listener_;
  RawDirectory directory_;
  LeaseBoard board_;
  Channel reader_;
};

/// Opens a member while `act` answers its connection.
template <typename Act>
std::unique_ptr<Member> open_beside(const std::string& name, Act act) {
  std::unique_ptr<Member> member;
  std::thread opening([&] { member = std::make_unique<Member>(name, exchange_test::Options{.join_ms = 10'000}); });
  act();
  opening.join();
  return member;
}

/// A member with an impostor that has welcomed it and sent one region of a page.
struct Beside {
  explicit Beside(int number) : impostor(exchange_name(number)), memory(*base::create_memfd("memory", 4096)) {
    member = open_beside(exchange_name(number), [&] {
      impostor.reader();
      impostor.send(impostor.welcome(), impostor.files());
      impostor.send_region(1, memory.get(), 0, 4096);
    });
  }
  Impostor impostor;
  base::UniqueFd memory;
  std::unique_ptr<Member> member;
};

TEST(HostileOwner, IsReadLikeAnyOtherIfItKeepsToTheProtocol) {
  Beside beside(101);
  beside.impostor.publish("key", {1, 0, 4096, 0});
  std::string bytes;
  EXPECT_EQ(beside.member->pull(beside.member->find("key"), bytes), 0);
}

TEST(HostileOwner, EntriesBeyondItsMemoryAreRefused) {
  Beside beside(102);
  const std::vector<Place> places{{1, 1, 4096, 0},           {1, 4096, 1, 0}, {1, UINT64_MAX - 1, 1, 0},
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
      base::create_memfd("huge", shmem::exchange::directory_size(kSlots));  // others can write it
  for (int variant = 0; variant < 8; ++variant) {
    Impostor impostor(exchange_name(110 + variant));
    const auto member = open_beside(exchange_name(110 + variant), [&] {
      impostor.reader();
      Message welcome = impostor.welcome();
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
  for (int variant = 0; variant < 4; ++variant) {
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
      default:
        for (std::uint32_t number = 2; number < 80; ++number) {
          Message message = message_of(Kind::kRegion, number);
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
  const Listener silent = *Listener::open(name);  // as a member that is stopped
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
      Message welcome = impostor.welcome();
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
    std::array<std::byte, sizeof(Message) + 8> hello{};
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
  EXPECT_EQ(owner.stats().refused, 3U);
  owner.close();
  EXPECT_THAT(messages.get(), ElementsAre(version_warning(name, "")));
}

TEST(OtherVersion, IsNotWhatGarbageIsTakenFor) {
  const std::string name = exchange_name(162);
  const Messages messages;
  Member owner(name);
  Channel channel = connect_to(owner, name, 0);
  Message hello = message_of(Kind::kHello, 60);
  hello.protocol = 0x2f202f47;
  ASSERT_EQ(channel.send(hello), std::errc{});
  EXPECT_TRUE(is_closed(channel));
  owner.close();
  EXPECT_THAT(messages.get(), IsEmpty());
}

}  // namespace
