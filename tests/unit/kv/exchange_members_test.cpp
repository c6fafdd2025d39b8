// SPDX-License-Identifier: Apache-2.0
// How many members there may be, and what a member keeps of others that have gone.
#include "kv/exchange/members.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "base/disposal.hpp"
#include "base/memfd.hpp"
#include "kv/exchange/directory_writer.hpp"
#include "kv/exchange/links.hpp"
#include "kv/exchange/meeting_place.hpp"
#include "kv/exchange/transfers.hpp"
#include "tests/unit/kv/exchange_fixture.hpp"
#include "wire/listener.hpp"

namespace exchange_test {

std::atomic<int> polls{0};

}  // namespace exchange_test

namespace {

std::atomic<std::size_t> watched_bytes{0};
std::atomic<pid_t> unmapped_by{0};
std::atomic<int> failed_polls{0};

}  // namespace

/// Notes which thread unmaps memory of the size that a test watches.
extern "C" int munmap(void* address, size_t bytes) noexcept {
  if (bytes == watched_bytes) {
    unmapped_by = ::gettid();
  }
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}

/// Counts all and those that fail, also for libshmem.so.
extern "C" [[gnu::visibility("default")]] int poll(pollfd* waiting, nfds_t count, int limit_ms) {
  const timespec limit{.tv_sec = limit_ms / 1000, .tv_nsec = limit_ms % 1000 * 1'000'000L};
  const int result = ::ppoll(waiting, count, limit_ms < 0 ? nullptr : &limit, nullptr);
  ++exchange_test::polls;
  failed_polls += result < 0 ? 1 : 0;
  return result;
}

namespace {

using exchange_test::exchange_name;
using exchange_test::FewDescriptors;
using exchange_test::Member;
using exchange_test::Options;
using shmem::exchange::Channel;
using shmem::exchange::ChannelMessage;
using shmem::exchange::Counters;
using shmem::exchange::DirectoryWriter;
using shmem::exchange::Disposal;
using shmem::exchange::Kind;
using shmem::exchange::LeaseBoard;
using shmem::exchange::LocalPeer;
using shmem::exchange::Members;
using shmem::exchange::Offer;
using shmem::exchange::Peers;
using shmem::exchange::SeatSocket;
using ::testing::HasSubstr;

/// False: it did not happen in time.
template <typename Condition>
bool soon(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + exchange_test::kLong;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(ExchangeMembers, AnExchangeHasSoManyMembers) {
  const std::string name = exchange_name(61);
  std::vector<SeatSocket> seats;  // with members that do not answer
  for (int i = 0; i < SHMEMX_EXCHANGE_MOST_MEMBERS; ++i) {
    auto seat = SeatSocket::open(name);
    ASSERT_TRUE(seat) << i;
    seats.push_back(*std::move(seat));
  }
  shmemx_exchange_t* more = nullptr;
  const shmemx_exchange_options_t options = Options{.join_ms = 1}.get();
  EXPECT_EQ(shmemx_exchange_open(name.c_str(), &options, &more), -EUSERS);
  EXPECT_THAT(shmemx_error_text(), HasSubstr("has 64 members already; leave one"));
  seats.erase(seats.begin() + 5);
  Member last(name, {.join_ms = 1});
  EXPECT_EQ(last.stats().seat, 5U);
}

/// Processes that connect without an end would keep the thread from all else.
TEST(ExchangeMembers, TakesSomeConnectionsAtOnce) {
  using shmem::exchange::MeetingPlace;
  using shmem::exchange::PlaceSocket;
  constexpr int kMost = wire::Listener::kMostAtOnce;
  const MeetingPlace place{exchange_name(68), ""};
  base::Disposal disposal;
  auto opened = PlaceSocket::open(place, "test");
  ASSERT_TRUE(opened && *opened);
  PlaceSocket& socket = **opened;
  std::vector<base::UniqueFd> clients;
  while (clients.size() < kMost + 20) {
    auto client = shmem::exchange::connect_in(place, "test");
    ASSERT_TRUE(client) << "the queue of the socket is too short for this test";
    clients.push_back(*std::move(client));
  }
  std::vector<base::UniqueFd> taken;
  const auto take = [&](base::UniqueFd& one) {
    taken.push_back(std::move(one));
    return true;
  };
  EXPECT_EQ(socket.accept(disposal, take), 0U);
  EXPECT_EQ(taken.size(), kMost);
  EXPECT_FALSE(socket.pauses());
  EXPECT_EQ(socket.accept(disposal, take), 0U);
  EXPECT_EQ(taken.size(), clients.size());
  socket.shut();
}

/// An owner is killed, and a child that it has forked lives on.
TEST(ExchangeMembers, AChildDoesNotKeepThePlaceOfAMemberThatWasKilled) {
  const std::string name = exchange_name(61);
  std::array<int, 2> lives{};
  ASSERT_EQ(::pipe2(lives.data(), O_CLOEXEC), 0);
  const base::UniqueFd end(lives[0]);
  base::UniqueFd childs_end(lives[1]);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::setpgid(0, 0);
    shmemx_exchange_t* exchange = nullptr;
    const bool good = shmemx_exchange_open(name.c_str(), nullptr, &exchange) == 0 && ::fork() >= 0 &&
                      ::write(childs_end.get(), "x", 1) == 1;  // both
    ::alarm(60);                                               // also of the child
    ::pause();
    ::_exit(good ? 0 : 1);
  }
  childs_end.reset();
  Member reader(name);  // its threads would have been in the way of the fork
  const auto members = [&] { return reader.stats().members; };
  const auto wait_for = [&](std::uint64_t number) {
    for (int i = 0; i < 20'000 && members() != number; ++i) {
      ::usleep(1000);
    }
  };
  std::array<char, 2> both{};
  for (char& byte : both) {
    ASSERT_EQ(::read(end.get(), &byte, 1), 1);
  }
  wait_for(1);
  ASSERT_EQ(members(), 1U);
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  wait_for(0);
  EXPECT_EQ(members(), 0U);
  pollfd child{.fd = end.get(), .events = 0, .revents = 0};
  EXPECT_EQ(::poll(&child, 1, 0), 0) << "the child has ended as well, so that this shows nothing";
  ::kill(-owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
}

TEST(ExchangeMembers, WithoutDescriptorsOpenFailsAndCanBeRepeated) {
  const std::string name = exchange_name(62);
  int failures = 0;
  for (int more = 0; more < 20; ++more) {
    shmemx_exchange_t* opened = nullptr;
    const FewDescriptors few(more);
    const int code = shmemx_exchange_open(name.c_str(), nullptr, &opened);
    EXPECT_TRUE(code == 0 || code == -EMFILE) << code << ": " << shmemx_error_text();
    failures += code == 0 ? 0 : 1;
    shmemx_exchange_close(opened);
  }
  EXPECT_GT(failures, 1);
  EXPECT_LT(failures, 20);
  Member owner(name);
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  Member reader(name);
  std::string bytes;
  EXPECT_EQ(reader.pull(reader.find("key"), bytes), 0);
}

/// Calls `wake` while poll() fails at once, since this process may have fewer descriptors than it is asked about.
template <typename Wake>
void expect_pauses(Wake wake) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 1;
  failed_polls = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  wake();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(soon([] { return failed_polls > 0; }));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const int polls = failed_polls;
  EXPECT_LT(polls, 20 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(ExchangeMembers, AThreadThatCannotWaitDoesNotSpin) {
  const std::string name = exchange_name(64);
  Member stays(name);
  Member leaves(name);
  expect_pauses([&] { leaves.close(); });  // which the thread of the other one sees
  EXPECT_TRUE(soon([&] { return stays.stats().members == 0; }));
}

TEST(ExchangeMembers, AThreadOfLinksThatCannotWaitDoesNotSpin) {
  auto place = *wire::parse_endpoint("127.0.0.1:0");
  Counters counters;
  const auto links = *shmem::exchange::Links::open(place, {}, {}, counters);
  expect_pauses([&] { links->drop(1); });  // there is no such link
}

/// A member that has welcomed this process.
struct LonePeer {
  LonePeer() {
    constexpr std::uint32_t kQuota = 4;
    const auto directory = DirectoryWriter::create(8);
    const auto board = LeaseBoard::create(kQuota);
    std::array<int, 2> ends{};
    EXPECT_TRUE(directory && board);
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    owner = Channel(base::UniqueFd(ends[0]));
    Offer offer{.channel = Channel(base::UniqueFd(ends[1]))};
    offer.welcome.message = message(Kind::kWelcome, 8);
    offer.welcome.message.quota = kQuota;
    offer.welcome.files = {base::UniqueFd(::dup(directory->file())), base::UniqueFd(::dup(board->file()))};
    peer = LocalPeer::open(offer, disposal).value();
  }
  static ChannelMessage message(Kind kind, std::uint32_t number = 1) {
    ChannelMessage message;
    message.kind = kind;
    message.member = 7;
    message.number = number;
    return message;
  }
  /// Number 1.
  bool send_region(std::size_t bytes) {
    const auto memory = base::create_memfd("memory", bytes);
    ChannelMessage region = message(Kind::kRegion);
    region.bytes = bytes;
    const int file = memory->get();
    return owner.send(region, {&file, 1}) == std::errc{};
  }

  Channel owner;
  Disposal disposal;
  std::shared_ptr<LocalPeer> peer;
};

/// An error that a call comes across must reach the thread that connects to members, which waits for a message.
TEST(ExchangeMembers, APeerThatACallEndsWakesTheThread) {
  LonePeer lone;
  ASSERT_EQ(::send(lone.owner.fd(), "short", 5, MSG_NOSIGNAL), 5);
  EXPECT_EQ(lone.peer->receive(), std::errc::protocol_error);
  pollfd waiting{.fd = lone.peer->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 1);
  EXPECT_FALSE(lone.peer->is_alive());
}

/// Its owner could otherwise fill the table of descriptors of this process with what waits to be closed.
TEST(ExchangeMembers, APeerTakesNoDescriptorsIfTooManyWaitToBeClosed) {
  LonePeer lone;
  std::promise<void> close;
  const auto closed = close.get_future().share();
  while (!lone.disposal.is_behind()) {
    lone.disposal.add(std::shared_ptr<const void>(&lone, [closed](const LonePeer* /*unused*/) { closed.wait(); }));
  }
  ASSERT_TRUE(lone.send_region(4096));
  EXPECT_EQ(lone.peer->receive(), std::errc::too_many_files_open);
  EXPECT_TRUE(lone.peer->is_alive());
  close.set_value();
  EXPECT_TRUE(soon([&] { return lone.peer->receive() == std::errc{}; })) << "the message has stayed";
  ASSERT_EQ(lone.owner.send(LonePeer::message(Kind::kRegion)), std::errc{});
  EXPECT_EQ(lone.peer->receive(), std::errc::protocol_error);
}

TEST(ExchangeMembers, APeerEndsAlthoughTooManyWaitToBeClosed) {
  LonePeer lone;
  std::promise<void> close;
  const auto closed = close.get_future().share();
  while (!lone.disposal.is_behind()) {
    lone.disposal.add(std::shared_ptr<const void>(&lone, [closed](const LonePeer* /*unused*/) { closed.wait(); }));
  }
  lone.owner = Channel();
  EXPECT_EQ(lone.peer->receive(), std::errc::connection_reset);
  close.set_value();
}

TEST(ExchangeTransfers, WithoutMemoryTheTransferFails) {
  shmem::exchange::Transfers transfers(1,
                                       [](const auto& /*transfer*/) -> shmem::Result<void> { throw std::bad_alloc(); });
  const auto transfer =
      std::make_shared<shmem::exchange::Transfer>(std::vector<shmem::exchange::Block>(), std::vector<void*>(), nullptr);
  ASSERT_TRUE(transfers.add(transfer));
  const auto outcome = transfer->wait(exchange_test::kLong);
  ASSERT_TRUE(outcome && !*outcome);
  EXPECT_EQ(outcome->error().code, std::errc::not_enough_memory);
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
                                     exchange_test::kLong, counters);
  ASSERT_TRUE(members) << members.error().text;
  ASSERT_TRUE(soon([&] { return (*members)->peers()->size() == 1; }));
  Peers of_a_call = (*members)->peers();
  const std::weak_ptr<LocalPeer> peer = of_a_call->front();
  owner.reset();
  ASSERT_TRUE(soon([&] { return (*members)->peers()->empty(); }));
  EXPECT_EQ(peer.use_count(), 2) << "of the call, and of the thread that unmaps";
  of_a_call.reset();
  EXPECT_TRUE(soon([&] { return peer.expired(); })) << "and does so";
}

/// Nor for memory that a member has taken back.
TEST(ExchangeMembers, TheThreadThatLearnsOfUnusedMemoryDoesNotUnmapIt) {
  constexpr std::size_t kBytes = 12345 * 4096;
  LonePeer lone;
  ASSERT_TRUE(lone.send_region(kBytes));
  ASSERT_EQ(lone.peer->receive(), std::errc{});
  ASSERT_EQ(lone.owner.send(LonePeer::message(Kind::kGone)), std::errc{});
  watched_bytes = kBytes;
  ASSERT_EQ(lone.peer->receive(), std::errc{});
  EXPECT_TRUE(soon([] { return unmapped_by != 0; }));
  watched_bytes = 0;
  EXPECT_NE(unmapped_by, ::gettid());
}

}  // namespace
