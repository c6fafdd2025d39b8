// SPDX-License-Identifier: Apache-2.0
// Descriptors in messages whose close() takes as long as their sender likes: no call waits for it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/fd_message.hpp"
#include "tests/unit/kv/exchange_impostor.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about

constexpr std::chrono::seconds kAtOnce{3};

/// Sockets that cannot send what they have, and whose close() waits for that until this ends.
class LingeringSockets {
 public:
  LingeringSockets() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    place_.sin_family = AF_INET;
    place_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place_;
    EXPECT_EQ(::bind(listener_.get(), address(), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    EXPECT_EQ(::getsockname(listener_.get(), address(), &size), 0);
  }
  LingeringSockets(const LingeringSockets&) = delete;
  LingeringSockets& operator=(const LingeringSockets&) = delete;
  ~LingeringSockets() { end(); }
  /// They can all be closed from now on.
  void end() {
    for (const auto& sink : sinks_) {
      const linger now{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(sink.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);  // resets the connection
    }
    sinks_.clear();
  }

  base::UniqueFd make() {
    base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), address(), sizeof place_), 0);
    sinks_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> bytes(1 << 16);
    while (::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    const linger long_time{.l_onoff = 1, .l_linger = 60};
    EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
    return socket;
  }
  /// Sends so many of them with the message, and has none of them afterwards.
  void send(const Channel& channel, const void* data, std::size_t bytes, std::size_t count) {
    std::vector<base::UniqueFd> sockets(count);
    std::vector<int> numbers;
    for (auto& socket : sockets) {
      socket = make();
      numbers.push_back(socket.get());
    }
    std::vector<char> copy(bytes);
    std::memcpy(copy.data(), data, bytes);
    iovec part{.iov_base = copy.data(), .iov_len = bytes};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    base::attach_fds(header, control, numbers);
    // Its receiver may have ended the connection because of an earlier message.
    const bool sent = ::sendmsg(channel.fd(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
    EXPECT_TRUE(sent || errno == EPIPE || errno == ECONNRESET) << errno;
    closers_.emplace_back([closing = std::move(sockets)] {});  // waits if the receiver has closed them already
  }
  void send(const Channel& channel, const ChannelMessage& message, std::size_t count) {
    send(channel, &message, sizeof message, count);
  }

 private:
  [[nodiscard]] sockaddr* address() { return reinterpret_cast<sockaddr*>(&place_); }

  std::vector<std::jthread> closers_;
  base::UniqueFd listener_;
  sockaddr_in place_{};
  std::vector<base::UniqueFd> sinks_;
};

template <typename Call>
void expect_at_once(const char* what, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kAtOnce) << what;
}

/// Another member finds and reads a block of `owner`, which then withdraws it.
void expect_service(const std::string& name, Member& owner) {
  expect_at_once("calls", [&] {
    ASSERT_EQ(owner.publish("key", 0, 8), 0);
    Member reader(name, {.join_ms = 500});
    std::string bytes;
    EXPECT_EQ(reader.pull(reader.find_soon("key"), bytes), 0);
    EXPECT_EQ(owner.withdraw("key", kSecond), 0);
  });
}

TEST(SlowDescriptors, OfAReaderHoldUpNeitherItsOwnerNorOthers) {
  const std::string name = exchange_name(701);
  LingeringSockets sockets;
  Member owner(name, {.lease_ms = 1000});
  owner.make_memory(4096);
  std::vector<Channel> channels;
  for (int i = 0; i < 4; ++i) {
    channels.push_back(*Channel::connect(name, 0));
    // A hello and garbage, with one, two and more descriptors, and messages that nobody will read.
    sockets.send(channels.back(), message_of(Kind::kHello, 40), static_cast<std::size_t>(1 + i));
    sockets.send(channels.back(), "short", 5, 1);
    sockets.send(channels.back(), message_of(Kind::kRegion, 1), 2);
  }
  expect_service(name, owner);
  expect_at_once("close", [&] { owner.close(); });
}

TEST(SlowDescriptors, OfAnOwnerHoldUpNoReader) {
  for (int variant = 0; variant < 6; ++variant) {
    const std::string name = exchange_name(710 + variant);
    LingeringSockets sockets;
    const auto memory = base::create_memfd("memory", 4096);
    Impostor impostor(name);
    const auto member = open_beside(name, [&] {
      Channel& reader = impostor.reader();
      switch (variant) {
        case 0:
          sockets.send(reader, impostor.welcome(), 2);
          break;
        case 1:
          sockets.send(reader, impostor.welcome(), 5);
          break;
        case 2:
          sockets.send(reader, message_of(Kind::kRegion, 1), 1);
          impostor.send(impostor.welcome(), impostor.files());
          break;
        default:
          impostor.send(impostor.welcome(), impostor.files());
          impostor.send_region(1, memory->get(), 0, 4096);
          break;
      }
      if (variant == 3) {
        sockets.send(reader, message_of(Kind::kRegion, 2), 1);
        impostor.publish("slow", {2, 0, 8, 0});
      } else if (variant == 4) {
        sockets.send(reader, message_of(Kind::kGone, 1), 2);
      } else if (variant == 5) {
        sockets.send(reader, message_of(Kind::kRegion, 3), 6);
      }
    });
    member->make_memory(4096);
    if (variant == 3) {
      expect_at_once("find", [&] {
        std::string bytes;
        EXPECT_EQ(member->pull(member->find("slow"), bytes), -EBADMSG);
      });
    }
    expect_service(name, *member);
    expect_at_once("close", [&] { member->close(); });
  }
}

/// An owner that tells of memory while this process is out of descriptors is not to blame.
TEST(SlowDescriptors, AMemberWithoutAnyLosesNoOwner) {
  Beside beside(720);
  const auto more = base::create_memfd("more", 4096);
  beside.impostor.publish("key", {2, 0, 8, 0});
  const auto block = beside.member->find("key");
  ASSERT_EQ(block.status, 0);
  std::string bytes;
  {
    const FewDescriptors none(FewDescriptors::kNone);
    beside.impostor.send_region(2, more->get(), 0, 4096);
    for (int i = 0; i < 20; ++i) {  // by this thread, or by that of the member
      EXPECT_EQ(beside.member->pull(block, bytes), -EMFILE);
      ::usleep(1000);
    }
  }
  EXPECT_EQ(beside.member->pull(block, bytes), 0);
  EXPECT_EQ(beside.member->stats().members, 1U);
  shmemx_exchange_member_t described{};
  ASSERT_EQ(shmemx_exchange_members(beside.member->get(), &described, 1), 1);
  EXPECT_EQ(described.refusals, 0U);
}

}  // namespace
