// SPDX-License-Identifier: Apache-2.0
// Processes of other users at an exchange: they get nothing, and hold up no member.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/user.hpp"
#include "tests/unit/kv/exchange_impostor.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about

/// The address of a seat of this user. Channel would put another user's number into it.
struct AddressOfSeat {
  AddressOfSeat(const std::string& exchange, std::uint32_t seat) {
    const std::string name =
        "shmem-exchange/" + std::to_string(::geteuid()) + "/" + exchange + "/" + std::to_string(seat);
    socket.sun_family = AF_UNIX;
    name.copy(socket.sun_path + 1, sizeof(socket.sun_path) - 1);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }

  sockaddr_un socket{};
  socklen_t size = 0;
};

base::UniqueFd seat_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

/// A process of another user, which ends with the code that `act` returns.
class OtherUser {
 public:
  static constexpr int kNotPossible = 100;

  template <typename Act>
  explicit OtherUser(Act act) : child_(::fork()) {
    if (child_ == 0) {
      ::alarm(60);
      ::_exit(::setuid(65534) == 0 ? act() : kNotPossible);
    }
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  ~OtherUser() { exit_code(); }
  int exit_code() {
    if (child_ > 0 && ::waitpid(child_, &status_, 0) == child_) {
      child_ = -1;
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  pid_t child_;
  int status_ = -1;
};

class HostileUser : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root can become another user";
    }
  }
};

TEST_F(HostileUser, GetsNothingFromAMember) {
  const std::string name = exchange_name(150);
  Member owner(name);
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  const AddressOfSeat seat(name, 0);
  OtherUser stranger([&] {
    Channel channel(seat_socket());
    if (::connect(channel.fd(), seat.get(), seat.size) != 0) {
      return 1;
    }
    ChannelMessage hello;
    hello.kind = Kind::kHello;
    hello.number = 60;
    channel.send(hello);  // fails if the member has closed the connection already
    std::array<char, sizeof(ChannelMessage)> bytes{};
    return ::recv(channel.fd(), bytes.data(), bytes.size(), 0) > 0 ? 2 : 0;
  });
  EXPECT_EQ(stranger.exit_code(), 0) << "2: the member has answered";
  for (int i = 0; i < 5'000 && owner.stats().refused == 0; ++i) {
    ::usleep(1000);  // it closes the connection before it counts
  }
  EXPECT_EQ(owner.stats().refused, 1U);
  EXPECT_EQ(owner.stats().readers, 0U);
}

TEST_F(HostileUser, OnASeatHoldsUpNobody) {
  const std::string name = exchange_name(151);
  constexpr std::uint32_t kJoinMs = exchange_test::kLongMs;
  std::array<int, 2> listens{};
  ASSERT_EQ(::pipe2(listens.data(), O_CLOEXEC), 0);
  const base::UniqueFd listens_end(listens[0]);
  base::UniqueFd child_end(listens[1]);
  const AddressOfSeat seat(name, 0);
  OtherUser impostor([&] {
    const base::UniqueFd listener = seat_socket();
    if (::bind(listener.get(), seat.get(), seat.size) != 0 || ::listen(listener.get(), 8) != 0 ||
        ::write(child_end.get(), "x", 1) != 1) {
      return 1;
    }
    // Both members connect to it, say nothing, and leave. It welcomes them as a member would, with a directory.
    RawDirectory directory;
    directory.publish(*Key::make("theirs", 6), {1, 0, 8, 0});
    const auto board = LeaseBoard::create(kImpostorQuota);
    const auto memory = base::create_memfd("memory", 4096);
    ChannelMessage region = message_of(Kind::kRegion, 1);
    region.bytes = 4096;
    ChannelMessage welcome = message_of(Kind::kWelcome, kImpostorSlots);
    welcome.quota = kImpostorQuota;
    welcome.lease_ms = 1000;
    std::array<Channel, 2> members;
    bool is_told = false;
    for (auto& member : members) {
      member = Channel(base::UniqueFd(::accept(listener.get(), nullptr, nullptr)));
      const int region_file = memory->get();
      member.send(region, {&region_file, 1});  // fails if the member has left already
      const std::array<int, 2> files{directory.file(), board->file()};
      member.send(welcome, files);
      std::array<char, sizeof(ChannelMessage)> bytes{};
      is_told = ::recv(member.fd(), bytes.data(), bytes.size(), 0) > 0 || is_told;
    }
    return is_told ? 2 : 0;
  });
  child_end.reset();
  char byte = 0;
  ASSERT_EQ(::read(listens_end.get(), &byte, 1), 1);
  const auto begin = std::chrono::steady_clock::now();
  Member owner(name, {.join_ms = kJoinMs});
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 8), 0);
  Member reader(name, {.join_ms = kJoinMs});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(kJoinMs));
  EXPECT_EQ(owner.stats().seat, 1U);
  EXPECT_EQ(owner.stats().refused, 1U);
  EXPECT_EQ(reader.stats().refused, 1U);
  EXPECT_EQ(reader.stats().members, 1U);
  EXPECT_EQ(reader.find("theirs").status, -ENOENT);
  std::string bytes;
  EXPECT_EQ(reader.pull(reader.find("key"), bytes), 0);
  EXPECT_EQ(impostor.exit_code(), 0) << "2: a member has told it something";
}

/// There, all users are one number, also this process's own: another user of the machine would pass for ours.
TEST(UserNamespace, ThatKnowsNoUserHasNoExchanges) {
  constexpr int kNoNamespaces = 100;
  const std::string name = exchange_name(155);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    if (::unshare(CLONE_NEWUSER) != 0) {
      ::_exit(kNoNamespaces);
    }
    shmemx_exchange_t* exchange = nullptr;
    const int result = shmemx_exchange_open(name.c_str(), nullptr, &exchange);
    const bool is_named = std::strstr(shmemx_error_text(), "stands for all users that are unknown") != nullptr;
    ::_exit(base::is_this_user(::geteuid()) ? 1 : result != -EACCES ? 2 : is_named ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespaces) {
    GTEST_SKIP() << "this machine lets no process make a user namespace";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(HostileUser, WithTheNumberOfUnknownUsersIsAUserWhereAllAreKnown) {
  OtherUser nobody([] { return base::is_this_user(::geteuid()) && !base::is_this_user(0) ? 0 : 1; });
  EXPECT_EQ(nobody.exit_code(), 0);
}

}  // namespace
