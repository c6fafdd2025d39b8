// SPDX-License-Identifier: Apache-2.0
// Holders and engines that end, stop, are of another version, or do not keep to the protocol.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>

#include "base/fd_message.hpp"
#include "base/mapping.hpp"
#include "kv/exchange/holder_messages.hpp"
#include "kv/exchange/holder_socket.hpp"
#include "kv/exchange/meeting_place.hpp"
#include "tests/unit/kv/holder_fixture.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about
using shmem::exchange::bytes_of_items;
using shmem::exchange::bytes_of_statuses;
using shmem::exchange::connect_in;
using shmem::exchange::holder_head;
using shmem::exchange::HolderAttach;
using shmem::exchange::HolderAttached;
using shmem::exchange::HolderBuffer;
using shmem::exchange::HolderHead;
using shmem::exchange::HolderItem;
using shmem::exchange::HolderItems;
using shmem::exchange::HolderKind;
using shmem::exchange::HolderRefused;
using shmem::exchange::HolderSocket;
using shmem::exchange::HolderStatuses;
using shmem::exchange::kHolderEnd;
using shmem::exchange::kHolderProtocol;
using shmem::exchange::kMostItems;
using shmem::exchange::PlaceSocket;
using ::testing::HasSubstr;

constexpr std::uint32_t kShort = 30;  // milliseconds

bool comes(int fd) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 20'000) == 1;
}

/// An engine that sends what a test says.
class RawEngine {
 public:
  explicit RawEngine(const std::string& name, bool attaches = true) : socket_(connect(name)) {
    HolderAttach request{.head = holder_head(HolderKind::kAttach, 1)};
    if (attaches && socket_.send(&request, sizeof request) == std::errc{} && comes(socket_.fd()) &&
        socket_.receive(answer_, &files_) == std::errc{}) {
      staging_ = *base::Mapping::share(files_[0].get(), answer_.as<HolderAttached>()->staging_bytes);
    }
  }
  std::errc send(const void* message, std::size_t bytes, std::vector<int> files = {}) {
    return socket_.send(message, bytes, files);
  }
  /// A kPut of parts, as they are; the statuses.
  std::vector<int> put(const std::vector<HolderItem>& items) {
    send_items(items);
    const auto* const told = answer<HolderStatuses>(bytes_of_statuses(items.size()));
    return told == nullptr ? std::vector<int>()
                           : std::vector<int>(told->statuses.begin(),
                                              told->statuses.begin() + static_cast<std::ptrdiff_t>(items.size()));
  }
  void send_items(const std::vector<HolderItem>& items) {
    HolderItems request;
    request.head = holder_head(HolderKind::kPut, ++number_, static_cast<std::uint32_t>(items.size()));
    std::copy(items.begin(), items.end(), request.items.begin());
    EXPECT_EQ(socket_.send(&request, bytes_of_items(items.size())), std::errc{});
  }
  template <typename Message>
  const Message* answer(std::size_t least = sizeof(Message)) {
    return comes(socket_.fd()) && socket_.receive(answer_) == std::errc{} ? answer_.as<Message>(least) : nullptr;
  }
  /// The holder has ended the connection.
  bool is_refused() {
    std::errc error{};
    while (comes(socket_.fd()) && (error = socket_.receive(answer_)) == std::errc{}) {
    }
    return error == std::errc::connection_reset;
  }
  char* staging() { return reinterpret_cast<char*>(staging_.data()); }
  [[nodiscard]] std::uint64_t staging_bytes() const { return staging_.size(); }
  int staging_file() { return files_[0].get(); }

 private:
  /// Connections may come faster than the holder accepts them.
  static base::UniqueFd connect(const std::string& name) {
    for (int i = 0; i < 20'000; ++i) {
      if (auto connected = connect_in({name}, kHolderEnd)) {
        return *std::move(connected);
      }
      ::usleep(1000);
    }
    ADD_FAILURE() << "cannot connect";
    return base::UniqueFd();
  }

  HolderSocket socket_;
  HolderSocket::Files files_{base::UniqueFd(), base::UniqueFd()};
  HolderBuffer answer_;
  base::Mapping staging_;
  std::uint64_t number_ = 1;
};

HolderItem part_of(const std::string& key, std::uint64_t bytes, std::uint64_t at, std::uint64_t part,
                   std::uint64_t offset = 0) {
  HolderItem item{.layout = 1, .bytes = bytes, .at = at, .part = part, .offset = offset};
  item.key_bytes = static_cast<std::uint32_t>(key.size());
  std::copy(key.begin(), key.end(), item.key.begin());
  return item;
}

/// The writes of a block in parts, which are as expected: an engine may pause for a second between them. Without a
/// processor for longer, this begins again.
template <typename Writes>
bool succeed_in_time(Writes writes) {
  bool good = false;
  bool is_late = true;
  for (int i = 0; i < 20 && !good && is_late; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    good = writes();
    is_late = std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(900);
  }
  return good;
}

/// A process of this user that has the holder's place.
class FalseHolder {
 public:
  explicit FalseHolder(const std::string& name) : place_(std::move(**PlaceSocket::open({name}, kHolderEnd))) {}
  ~FalseHolder() { place_.shut(); }
  /// The next engine, whose request has come.
  HolderSocket& engine() {
    EXPECT_TRUE(comes(place_.fd()));
    place_.accept(disposal_, [this](base::UniqueFd& socket) {
      engine_ = HolderSocket(std::move(socket));
      return true;
    });
    EXPECT_TRUE(comes(engine_.fd()));
    EXPECT_EQ(engine_.receive(request_), std::errc{});
    return engine_;
  }

 private:
  base::Disposal disposal_;
  PlaceSocket place_;
  HolderSocket engine_;
  HolderBuffer request_;
};

/// What an engine gets while an impostor answers its first message.
template <typename Answer>
int put_beside(const std::string& name, Engine& engine, Answer answer) {
  FalseHolder impostor(name);
  int status = 0;
  std::thread putting([&] { status = engine.put("key", "bytes"); });
  answer(impostor.engine());
  putting.join();
  return status;
}

// ---- Holders ----

TEST(ExchangeHolderFaults, WithoutAHolderPutsFailAtOnce) {
  Engine engine(exchange_name(330));
  EXPECT_EQ(engine.put("key", "bytes"), -ENOTCONN);
  EXPECT_THAT(engine.error(), HasSubstr("no holder is here; start one: kv_exchange hold " + exchange_name(330)));
  EXPECT_EQ(engine.discard("key"), -ENOTCONN);
  EXPECT_EQ(engine.pin("key", true), -ENOTCONN);
  EXPECT_EQ(shmemx_exchange_discard_all(engine.get()), -ENOTCONN);
  shmemx_exchange_holder_stats_t stats{};
  EXPECT_EQ(shmemx_exchange_holder_stats(engine.get(), &stats), -ENOTCONN);
  shmemx_exchange_position_t position{};
  EXPECT_EQ(shmemx_exchange_events(engine.get(), &position, nullptr, 0, 0), -ENOTCONN);
}

TEST(ExchangeHolderFaults, AHolderThatIsStartedAgainIsFoundEmpty) {
  const std::string name = exchange_name(331);
  Engine engine(name);
  Engine reader(name);
  for (int round = 0; round < 3; ++round) {
    const Holder holder(name);
    const std::string key = "key " + std::to_string(round);
    EXPECT_EQ(engine.put(key, "bytes"), 0) << engine.error();
    EXPECT_EQ(reader.find_soon(key).status, 0);
    EXPECT_EQ(reader.get_block(key), "bytes");
    EXPECT_FALSE(reader.has("key " + std::to_string(round - 1)));
    EXPECT_EQ(engine.holder_stats().blocks, 1U);
  }
  for (int i = 0; i < 5'000 && reader.stats().members != 1; ++i) {
    ::usleep(1000);
  }
  EXPECT_EQ(engine.put("key", "bytes"), -ENOTCONN);
  EXPECT_FALSE(reader.has("key 2"));
}

TEST(ExchangeHolderFaults, AHolderThatDoesNotAnswerCostsOneCallAMoment) {
  const std::string name = exchange_name(332);
  Engine engine(name);
  ASSERT_EQ(shmemx_exchange_use_holder(engine.get(), "", kShort), 0);
  const FalseHolder silent(name);
  EXPECT_EQ(engine.put("key", "bytes"), -ETIMEDOUT);
  EXPECT_THAT(engine.error(), HasSubstr("the holder of exchange " + name + ": it has not answered for 30 ms"));
  // Without waiting, unless this process has got no processor for a second.
  for (int i = 0; i < 20 && engine.error().find("it has not answered") != std::string::npos; ++i) {
    EXPECT_EQ(engine.put("key", "bytes"), -ETIMEDOUT);
  }
  EXPECT_THAT(engine.error(), HasSubstr("it does not answer"));
}

/// It stops after it has taken an engine, with a put under way.
TEST(ExchangeHolderFaults, PutsWorkAgainWhenAStoppedHolderGoesOn) {
  const std::string name = exchange_name(333);
  const OtherProcess holder([&] { return Holder(name); });
  Engine engine(name);
  ASSERT_EQ(engine.put("before", "bytes"), 0) << engine.error();
  holder.stop();
  ASSERT_EQ(shmemx_exchange_use_holder(engine.get(), "", kShort), 0);  // which connects again
  EXPECT_EQ(engine.put("while", "bytes"), -ETIMEDOUT);
  EXPECT_EQ(engine.get_block("before"), "bytes") << "reads go on";
  holder.go_on();
  ASSERT_EQ(shmemx_exchange_use_holder(engine.get(), "", kLongMs), 0);
  EXPECT_EQ(engine.put("after", "bytes"), 0) << engine.error();
  // The same with a connection that stays.
  ASSERT_EQ(shmemx_exchange_use_holder(engine.get(), "", 300), 0);
  while (engine.put("again", "bytes") == -ETIMEDOUT) {
  }
  holder.stop();
  EXPECT_EQ(engine.put("late", block_of('l', 3 * 1024 * 1024 / 4)), -ETIMEDOUT);
  EXPECT_EQ(engine.put("later", "bytes"), -ETIMEDOUT);
  holder.go_on();
  int code = -ETIMEDOUT;
  for (int i = 0; i < 10'000 && code == -ETIMEDOUT; ++i) {
    ::usleep(1000);
    code = engine.put("later", "bytes");
  }
  EXPECT_EQ(code, 0) << engine.error();
  EXPECT_EQ(engine.get_block("late"), block_of('l', 3 * 1024 * 1024 / 4)) << "it was stored, late";
}

/// The next part has come meanwhile.
TEST(ExchangeHolderFaults, TimeInWhichTheHolderStandsStillIsNoPauseOfAnEngine) {
  const std::string name = exchange_name(321);
  const OtherProcess holder([&] { return Holder(name); });
  RawEngine engine(name);
  EXPECT_TRUE(succeed_in_time([&] {
    holder.go_on();
    const bool begun = engine.put({part_of("k", 64, 0, 32)}) == std::vector<int>{0};
    holder.stop();
    return begun;
  }));
  engine.send_items({part_of("k", 64, 32, 32)});
  ::usleep(1'500'000);
  holder.go_on();
  const auto* const told = engine.answer<HolderStatuses>(bytes_of_statuses(1));
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->statuses[0], 0);
}

TEST(ExchangeHolderFaults, AnotherVersionIsNamed) {
  const std::string name = exchange_name(334);
  Engine engine(name);
  HolderRefused answer{.head = holder_head(HolderKind::kRefused, 0)};
  answer.head.protocol = kHolderProtocol + 1;
  shmem::exchange::set_text(answer.head.version, "9.8.7");
  EXPECT_EQ(put_beside(name, engine, [&](HolderSocket& socket) { socket.send(&answer, sizeof answer); }),
            -EPROTONOSUPPORT);
  const Holder holder(name);
  RawEngine other(name, false);
  HolderAttach request{.head = holder_head(HolderKind::kAttach, 1)};
  request.head.protocol = kHolderProtocol - 1;
  shmem::exchange::set_text(request.head.version, "0.0.9");
  EXPECT_EQ(other.send(&request, sizeof request), std::errc{});
  const auto* const refused = other.answer<HolderRefused>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->head.code, -EPROTONOSUPPORT);
  EXPECT_THAT(std::string(shmem::exchange::text_in(refused->text)),
              HasSubstr("the holder has version 0.1.0 of libshmem, and this process has 0.0.9"));
}

TEST(ExchangeHolderFaults, AnswersThatMakeNoSenseAreErrors) {
  const std::string name = exchange_name(335);
  Engine engine(name);
  const HolderHead short_one = holder_head(HolderKind::kAttached, 1);
  EXPECT_EQ(put_beside(name, engine, [&](HolderSocket& socket) { socket.send(&short_one, sizeof short_one); }),
            -EPROTO);
  HolderAttached without_files{.head = holder_head(HolderKind::kAttached, 1)};
  without_files.staging_bytes = kMiB;
  EXPECT_EQ(put_beside(name, engine, [&](HolderSocket& socket) { socket.send(&without_files, sizeof without_files); }),
            -EPROTO);
  const base::UniqueFd unsealed(::memfd_create("unsealed", 0));
  ASSERT_EQ(::ftruncate(unsealed.get(), kMiB), 0);
  const std::vector<int> files{unsealed.get(), unsealed.get()};
  EXPECT_EQ(
      put_beside(name, engine, [&](HolderSocket& socket) { socket.send(&without_files, sizeof without_files, files); }),
      -EPROTO);
  // Three descriptors, where two are expected.
  EXPECT_EQ(put_beside(name, engine,
                       [&](HolderSocket& socket) {
                         const std::array<int, 3> many{unsealed.get(), unsealed.get(), unsealed.get()};
                         iovec data{.iov_base = &without_files, .iov_len = sizeof without_files};
                         alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof many)> control{};
                         msghdr header{};
                         header.msg_iov = &data;
                         header.msg_iovlen = 1;
                         base::attach_fds(header, control, many);
                         EXPECT_GT(::sendmsg(socket.fd(), &header, 0), 0);
                       }),
            -EPROTO);
  EXPECT_EQ(put_beside(name, engine, [&](HolderSocket& socket) { socket.shut(); }), -EOWNERDEAD);
}

// ---- Engines ----

TEST(ExchangeHolderFaults, EnginesThatDoNotKeepToTheProtocolAreRefused) {
  const std::string name = exchange_name(340);
  const Holder holder(name);
  Engine good(name);
  ASSERT_EQ(good.put("key", "bytes"), 0);
  HolderHead head = holder_head(HolderKind::kPut, 7, kMostItems + 1);
  for (const std::size_t bytes : {std::size_t{1}, sizeof head - 1, sizeof head}) {
    RawEngine before(name, false);
    EXPECT_EQ(before.send(&head, bytes), std::errc{});
    EXPECT_TRUE(before.is_refused()) << bytes;
    RawEngine after(name);
    EXPECT_EQ(after.send(&head, bytes), std::errc{});
    EXPECT_TRUE(after.is_refused()) << bytes;
  }
  head = holder_head(HolderKind::kAttached, 1);
  RawEngine wrong_kind(name);
  EXPECT_EQ(wrong_kind.send(&head, sizeof head), std::errc{});
  EXPECT_TRUE(wrong_kind.is_refused());
  const std::vector<char> large(20'000);
  RawEngine too_large(name);
  EXPECT_EQ(too_large.send(large.data(), large.size()), std::errc{});
  EXPECT_TRUE(too_large.is_refused());
  RawEngine with_files(name);
  EXPECT_EQ(with_files.send(&head, sizeof head, {0, 1}), std::errc{});
  EXPECT_TRUE(with_files.is_refused());
  HolderAttach request{.head = holder_head(HolderKind::kAttach, 1)};
  request.tenant.fill('t');
  RawEngine of_long_name(name, false);
  EXPECT_EQ(of_long_name.send(&request, sizeof request), std::errc{});
  const auto* const refused = of_long_name.answer<HolderRefused>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->head.code, -EINVAL);
  EXPECT_EQ(good.put("after", "bytes"), 0);
}

TEST(ExchangeHolderFaults, PartsThatMakeNoSenseAreErrors) {
  const std::string name = exchange_name(341);
  const Holder holder(name);
  RawEngine engine(name);
  const std::uint64_t most = engine.staging_bytes();
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  for (const HolderItem& item :
       {part_of("", 8, 0, 8), part_of("k", 0, 0, 0), part_of("k", 8, 0, 0), part_of("k", 8, 0, 9),
        part_of("k", 8, 9, 1), part_of("k", kAll, kAll, 1), part_of("k", kAll, 0, kAll),
        part_of("k", 8, 0, 8, most - 7), part_of("k", 8, 0, 8, kAll), part_of("k", kMiB, 0, most, 1)}) {
    EXPECT_EQ(engine.put({item}), std::vector<int>{-EINVAL});
  }
  HolderItem long_key = part_of("k", 8, 0, 8);
  long_key.key_bytes = 129;
  EXPECT_EQ(engine.put({long_key}), std::vector<int>{-EINVAL});
  EXPECT_EQ(engine.put({part_of("k", 64, 32, 32)}), std::vector<int>{-ESTALE}) << "without its first part";
  EXPECT_TRUE(succeed_in_time([&] {
    return engine.put({part_of("k", 64, 0, 32)}) == std::vector<int>{0} &&
           engine.put({part_of("k", 64, 0, 32)}) == std::vector<int>{0} &&  // it begins again
           engine.put({part_of("k", 64, 16, 32)}) == std::vector<int>{-ESTALE} &&
           engine.put({part_of("k", 64, 32, 32)}) == std::vector<int>{0};
  }));
  EXPECT_EQ(engine.put({part_of("k", 8, 0, 8)}), std::vector<int>{-EMSGSIZE});
}

/// Other engines would wait for what takes long.
TEST(ExchangeHolderFaults, AMessageAsksForLittle) {
  const std::string name = exchange_name(348);
  const Holder holder(name, {.bytes = 16 * kMiB});
  const auto many = [](std::uint64_t bytes, std::size_t count) {
    std::vector<HolderItem> items;
    for (std::size_t i = 0; i < count; ++i) {
      items.push_back(part_of("k" + std::to_string(i), bytes, 0, bytes));
    }
    return items;
  };
  RawEngine engine(name);
  const std::uint64_t staging = engine.staging_bytes();
  EXPECT_EQ(engine.put(many(staging / 4, 4)), std::vector<int>(4, 0));
  engine.send_items(many(staging / 4 + 1, 4));
  EXPECT_TRUE(engine.is_refused()) << "more bytes than it can have written";
  RawEngine other(name);
  other.send_items({part_of("a", 4096, 0, 64), part_of("b", 4096, 0, 64)});
  EXPECT_TRUE(other.is_refused()) << "room for two large blocks";
  Engine good(name);
  EXPECT_EQ(good.holder_stats().writing_bytes, 0U);
}

/// At each step: nothing is published, and the range that was leased is free again.
TEST(ExchangeHolderFaults, AnEngineThatEndsWhileItWritesHasPublishedNothing) {
  const std::string name = exchange_name(342);
  const Holder holder(name);
  Engine good(name);
  constexpr std::uint64_t kBlock = kMiB;
  for (int parts = 0; parts <= 3; ++parts) {
    {
      RawEngine engine(name);
      EXPECT_TRUE(succeed_in_time([&] {
        bool written = true;
        for (int i = 0; i < parts; ++i) {
          const std::uint64_t part = kBlock / 4;
          const auto item = part_of("key", kBlock, static_cast<std::uint64_t>(i) * part, part);
          written = written && engine.put({item}) == std::vector<int>{0};
        }
        written = written && good.holder_stats().writing_bytes == (parts == 0 ? 0 : kBlock);
        const int status = parts == 0 ? -EBUSY : good.put("key", block_of('a', kBlock));
        EXPECT_TRUE(status != 0 || good.discard("key") == 0);
        return written && status == -EBUSY;
      })) << parts;
    }
    for (int i = 0; i < 10'000 && good.holder_stats().writing_bytes != 0; ++i) {
      ::usleep(1000);
    }
    EXPECT_EQ(good.holder_stats().writing_bytes, 0U);
    EXPECT_EQ(good.holder_stats().bytes, 0U);
    EXPECT_FALSE(good.has("key"));
  }
  for (int i = 0; i < 4; ++i) {  // all of the memory is there
    EXPECT_EQ(good.put(std::to_string(i), block_of('a', kBlock)), 0);
  }
  EXPECT_EQ(good.holder_stats().evicted, 0U);
}

TEST(ExchangeHolderFaults, AnEngineThatStopsWhileItWritesLosesItsLease) {
  const std::string name = exchange_name(343);
  const Holder holder(name);
  Engine good(name);
  RawEngine engine(name);
  EXPECT_EQ(engine.put({part_of("key", kMiB, 0, 4096)}), std::vector<int>{0});
  for (int i = 0; i < 20'000 && good.holder_stats().writing_bytes != 0; ++i) {
    ::usleep(1000);
  }
  EXPECT_EQ(good.holder_stats().writing_bytes, 0U);
  EXPECT_EQ(engine.put({part_of("key", kMiB, 4096, 4096)}), std::vector<int>{-ESTALE});
  EXPECT_EQ(good.put("key", block_of('a', kMiB)), 0);
}

TEST(ExchangeHolderFaults, AnEngineCannotChangeWhatItHasPut) {
  const std::string name = exchange_name(344);
  const Holder holder(name);
  RawEngine engine(name);
  std::fill_n(engine.staging(), 4096, 'a');
  EXPECT_EQ(engine.put({part_of("key", 4096, 0, 4096)}), std::vector<int>{0});
  std::fill_n(engine.staging(), 4096, 'b');
  // Nor can it make the holder wait, or end, by taking its staging memory away.
  EXPECT_NE(::ftruncate(engine.staging_file(), 0), 0);
  EXPECT_EQ(::fallocate(engine.staging_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        static_cast<off_t>(engine.staging_bytes())),
            0);
  Engine reader(name);
  EXPECT_EQ(reader.get_block("key"), block_of('a', 4096));
  EXPECT_EQ(engine.put({part_of("zeros", 4096, 0, 4096)}), std::vector<int>{0});
  EXPECT_EQ(reader.get_block("zeros"), std::string(4096, '\0'));
}

/// An engine that sends requests and takes no answers.
TEST(ExchangeHolderFaults, AnEngineThatDoesNotReadIsGivenUp) {
  const std::string name = exchange_name(345);
  const Holder holder(name);
  RawEngine engine(name);
  const HolderHead request = holder_head(HolderKind::kAskStats, 1);
  std::errc error{};
  for (int i = 0; i < 1'000'000 && (error == std::errc{} || error == std::errc::resource_unavailable_try_again); ++i) {
    error = engine.send(&request, sizeof request);
  }
  EXPECT_TRUE(error == std::errc::broken_pipe || error == std::errc::connection_reset) << static_cast<int>(error);
  Engine good(name);
  EXPECT_EQ(good.put("key", "bytes"), 0);
}

TEST(ExchangeHolderFaults, ManyConnectionsDoNotKeepEnginesOut) {
  const std::string name = exchange_name(346);
  const Holder holder(name);
  std::vector<std::unique_ptr<RawEngine>> silent(200);
  for (auto& one : silent) {
    one = std::make_unique<RawEngine>(name, false);
  }
  Engine good(name);
  int status = good.put("key", "bytes");
  for (int i = 0; i < 20'000 && status == -ETIMEDOUT; ++i) {
    ::usleep(1000);
    status = good.put("key", "bytes");
  }
  EXPECT_EQ(status, 0) << good.error();
}

TEST(ExchangeHolderFaults, AForkedChildIsNoEngine) {
  const std::string name = exchange_name(347);
  const Holder holder(name);
  Engine engine(name);
  ASSERT_EQ(engine.put("key", "bytes"), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    shmemx_exchange_put_t put{};
    shmemx_exchange_holder_stats_t stats{};
    const bool good = shmemx_exchange_put(engine.get(), &put, 1) == -EPERM &&
                      shmemx_exchange_holder_stats(engine.get(), &stats) == -EPERM &&
                      shmemx_exchange_discard_all(engine.get()) == -EPERM;
    shmemx_exchange_close(engine.get());
    shmemx_exchange_close(holder.get());
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(engine.put("after", "bytes"), 0);
}

}  // namespace
