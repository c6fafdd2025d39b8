// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/memfd.hpp"
#include "shmem/bootstrap/single.hpp"
#include "shmem/memory/fd_exchange.hpp"
#include "shmem/memory/fd_passing.hpp"
#include "tests/support/lingering_sockets.hpp"
#include "tests/unit/shmem/bootstrap_processes.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::in_processes;

constexpr seconds kFetchLimit{20};

auto soon(milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

ino_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/// "" if PE `pe` receives the descriptors of `memory`.
std::string fetch(const base::RandomName& name, int pe, const std::array<int, 2>& memory) {
  auto client = FdClient::open();
  if (!client) {
    return client.error().text;
  }
  const auto fds = client->fetch(name, pe, kFetchLimit, SingleBootstrap());
  if (!fds) {
    return fds.error().text;
  }
  if (fds->size() != memory.size()) {
    return std::to_string(fds->size()) + " descriptors";
  }
  const bool same = std::equal(fds->begin(), fds->end(), memory.begin(),
                               [](const base::UniqueFd& a, int b) { return inode_of(a.get()) == inode_of(b); });
  return same ? "" : "other files";
}

std::pair<sockaddr_un, socklen_t> address_of(const base::RandomName& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, "shmem-", 6);
  std::memcpy(address.sun_path + 7, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 7 + name.size())};
}

/// A connection by a process that knows the name but is not a PE.
base::UniqueFd connect_to(const base::RandomName& name) {
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto [address, size] = address_of(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    socket.reset();
  }
  return socket;
}

class FdPassing : public ::testing::Test {
 protected:
  FdServer server_ = FdServer::open().value();
  base::UniqueFd first_ = base::create_memfd("test", 4096).value();
  base::UniqueFd second_ = base::create_memfd("test", 4096).value();
  std::array<int, 2> memory_{first_.get(), second_.get()};
  SingleBootstrap bootstrap_;
};

TEST_F(FdPassing, PassesTheDescriptorsToEachPe) {
  const auto texts = in_processes(4, [&](int pe) -> std::string {
    if (pe > 0) {
      return fetch(server_.name(), pe, memory_);
    }
    const auto served = server_.serve(memory_, 4, soon(kFetchLimit), bootstrap_);
    return served ? "" : served.error().text;
  });
  EXPECT_THAT(texts, ::testing::Each(::testing::IsEmpty()));
}

TEST_F(FdPassing, AnswersEachPeOnce) {
  const auto texts = in_processes(3, [&](int pe) -> std::string {
    if (pe == 0) {
      const auto served = server_.serve(memory_, 3, soon(kFetchLimit), bootstrap_);
      return served ? "" : served.error().text;
    }
    if (pe == 2) {
      return "";
    }
    const std::string first = fetch(server_.name(), 1, memory_);
    const std::string second = fetch(server_.name(), 1, memory_);
    return first + "/" + second + "/" + fetch(server_.name(), 2, memory_);
  });
  EXPECT_EQ(texts[0], "");
  EXPECT_THAT(texts[1], ::testing::MatchesRegex("/PE 0 closed the connection .*/"));
}

TEST_F(FdPassing, DoesNotAnswerStrangers) {
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    if (pe == 0) {
      const auto served = server_.serve(memory_, 2, soon(kFetchLimit), bootstrap_);
      return served ? "" : served.error().text;
    }
    const base::UniqueFd silent = connect_to(server_.name());
    ::shutdown(silent.get(), SHUT_WR);
    for (const std::int32_t wrong_pe : {0, 2, -1, 1 << 20}) {
      const base::UniqueFd liar = connect_to(server_.name());
      ::send(liar.get(), &wrong_pe, sizeof(wrong_pe), MSG_NOSIGNAL);
    }
    const base::UniqueFd brief = connect_to(server_.name());
    ::send(brief.get(), "x", 1, MSG_NOSIGNAL);
    return fetch(server_.name(), 1, memory_);
  });
  EXPECT_THAT(texts, ::testing::Each(::testing::IsEmpty()));
}

TEST_F(FdPassing, DoesNotAnswerOtherUsers) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become another user";
  }
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    if (pe == 0) {
      const auto served = server_.serve(memory_, 2, soon(seconds{1}), bootstrap_);
      return served ? "served" : served.error().text;
    }
    if (::setuid(65534) != 0) {
      return "setuid";
    }
    return fetch(server_.name(), 1, memory_);
  });
  EXPECT_THAT(texts[0], HasSubstr("PE 1 did not fetch"));
  EXPECT_THAT(texts[1], HasSubstr("belongs to another user"));
}

TEST_F(FdPassing, DoesNotServeAsTheUserThatStandsForAllUnknownOnes) {
  const auto texts = in_processes(1, [&](int /*pe*/) -> std::string {
    if (::unshare(CLONE_NEWUSER) != 0) {
      return "no user namespaces";
    }
    const auto server = FdServer::open();
    const auto exchange = FdExchange::open();
    return server || exchange ? "opened" : server.error().text == exchange.error().text ? server.error().text : "";
  });
  if (texts[0] == "no user namespaces") {
    GTEST_SKIP() << "this machine lets no process make a user namespace";
  }
  EXPECT_THAT(texts[0], HasSubstr("stands for all users that are unknown"));
}

/// A connection of a process that has sent it a descriptor whose close() takes a minute.
base::UniqueFd connect_with_slow(test_support::LingeringSockets& sockets, const base::RandomName& name,
                                 const void* data, std::size_t bytes) {
  base::UniqueFd client = connect_to(name);
  sockets.send(client.get(), data, bytes, 1);
  return client;
}

constexpr seconds kEnds{15};

TEST_F(FdPassing, AServerWaitsForNoStranger) {
  std::optional<FdServer> server = FdServer::open().value();
  test_support::LingeringSockets sockets;
  std::vector<base::UniqueFd> strangers(8);
  for (auto& silent : strangers) {
    silent = connect_to(server->name());
  }
  constexpr std::int32_t kPe = 1;
  strangers.push_back(connect_with_slow(sockets, server->name(), &kPe, sizeof kPe));
  strangers.push_back(connect_with_slow(sockets, server->name(), "nonsense", 8));
  strangers.push_back(connect_to(server->name()));
  constexpr std::int32_t kNoPe = 7;
  ::send(strangers.back().get(), &kNoPe, sizeof kNoPe, 0);
  sockets.send(strangers.back().get(), "more", 4, 2);
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  std::thread pe([&] { text = fetch(server->name(), 1, memory_); });
  const auto served = server->serve(memory_, 2, soon(kFetchLimit), bootstrap_);
  pe.join();
  EXPECT_TRUE(served) << served.error().text;
  EXPECT_EQ(text, "");
  strangers.push_back(connect_with_slow(sockets, server->name(), "late", 4));
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kEnds) << "a close waits for a minute, a stranger for 5 s";
  sockets.end();
}

/// If there are more that say nothing than the server keeps, others wait for their end.
TEST_F(FdPassing, AServerIsThereAgainAfterManySilentStrangers) {
  std::vector<base::UniqueFd> strangers(100);
  for (auto& silent : strangers) {
    silent = connect_to(server_.name());
  }
  std::string text;
  std::thread pe([&] { text = fetch(server_.name(), 1, memory_); });
  EXPECT_TRUE(server_.serve(memory_, 2, soon(kFetchLimit), bootstrap_));
  pe.join();
  EXPECT_EQ(text, "");
}

TEST_F(FdPassing, AnExchangeDoesNotWaitForWhatStrangersHaveSent) {
  std::array<std::optional<FdExchange>, 2> ends{FdExchange::open().value(), FdExchange::open().value()};
  const std::array<std::optional<FdExchange::Peer>, 2> peers{FdExchange::Peer{ends[0]->address(), true},
                                                             FdExchange::Peer{ends[1]->address(), true}};
  test_support::LingeringSockets sockets;
  const base::UniqueFd stranger(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto [address, size] = address_of(ends[0]->address().name);
  const std::pair to(reinterpret_cast<const sockaddr*>(&address), size);
  sockets.send(stranger.get(), "x", 1, 3, to);
  const auto begin = std::chrono::steady_clock::now();
  std::array<std::string, 2> texts;
  const auto exchange = [&](int me) {
    const auto mine = static_cast<std::size_t>(me);
    const auto got = ends[mine]->exchange(memory_[mine], me, peers, [](const auto&) { return Result<void>(); });
    texts[mine] = !got                                                              ? got.error().text
                  : inode_of((*got)[1 - mine].get()) == inode_of(memory_[1 - mine]) ? ""
                                                                                    : "another file";
  };
  std::thread other(exchange, 1);
  exchange(0);
  other.join();
  EXPECT_THAT(texts, ::testing::Each(::testing::IsEmpty()));
  sockets.send(stranger.get(), "late", 4, 1, to);
  sockets.send(stranger.get(), "", 0, 1, to);
  ends[0].reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kEnds) << "a close waits for a minute";
  sockets.end();
}

TEST_F(FdPassing, NamesPesThatDoNotCome) {
  const auto served = server_.serve(memory_, 5, soon(milliseconds{20}), bootstrap_);
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, std::errc::timed_out);
  EXPECT_THAT(served.error().text, HasSubstr("PEs 1-4 did not fetch"));
}

TEST_F(FdPassing, EndsWhenTheJobDoes) {
  bootstrap_.abort(1, "somebody died");
  const auto served = server_.serve(memory_, 2, soon(kFetchLimit), bootstrap_);
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().text, "somebody died");
}

TEST_F(FdPassing, NoticesThatTheLeaderIsGone) {
  std::optional<FdServer> gone = FdServer::open().value();
  const base::RandomName name = gone->name();
  gone.reset();
  EXPECT_THAT(fetch(name, 1, memory_), HasSubstr("cannot reach PE 0"));
}

/// Simulates a PE that gets no processor for a second, and the news that comes meanwhile.
class LateNews final : public shmem_test::ThreadBootstrap {
 public:
  using ThreadBootstrap::ThreadBootstrap;
  [[nodiscard]] std::optional<std::string> aborted() const override {
    if (std::exchange(was_asked_, true)) {
      return "PE 2 has died";
    }
    std::this_thread::sleep_for(seconds{1});
    return std::nullopt;
  }

 private:
  mutable bool was_asked_ = false;
};

TEST_F(FdPassing, SaysWhyTheJobHasEndedIfTheLeaderIsGone) {
  std::optional<FdServer> leader = FdServer::open().value();
  const base::RandomName name = leader->name();
  std::thread end([&] {
    std::this_thread::sleep_for(milliseconds{20});
    leader.reset();
  });
  auto client = FdClient::open().value();
  shmem_test::Rendezvous rendezvous(1);
  const auto fds = client.fetch(name, 1, kFetchLimit, LateNews(rendezvous, 0));
  end.join();
  ASSERT_FALSE(fds);
  EXPECT_EQ(fds.error().text, "PE 2 has died");
}

TEST_F(FdPassing, TimesOutIfTheLeaderHangs) {
  auto client = FdClient::open().value();
  const auto fd = client.fetch(server_.name(), 1, milliseconds{50}, bootstrap_);  // the server does not run
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, std::errc::timed_out);
}

/// Interrupts the system calls of this process every 2 ms.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, nullptr);
    set(2000);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  ~Interruptions() { set(0); }

 private:
  static void set(int microseconds) {
    const itimerval every{.it_interval = {0, microseconds}, .it_value = {0, microseconds}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
  }
};

TEST_F(FdPassing, ContinuesAfterASignal) {
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    const Interruptions interruptions;
    if (pe == 0) {
      const auto served = server_.serve(memory_, 2, soon(kFetchLimit), bootstrap_);
      return served ? "" : served.error().text;
    }
    const base::UniqueFd slow = connect_to(server_.name());
    const auto until = soon(milliseconds{200});
    while (std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(milliseconds{20});
    }
    const std::int32_t self = 1;
    ::send(slow.get(), &self, sizeof(self), MSG_NOSIGNAL);
    std::array<char, 1> byte{};
    ssize_t got = 0;
    while ((got = ::recv(slow.get(), byte.data(), byte.size(), 0)) < 0 && errno == EINTR) {
    }
    return got == 1 ? "" : "PE 0 did not wait for the hello";
  });
  EXPECT_THAT(texts, ::testing::Each(::testing::IsEmpty()));
}

TEST(FdClient, KeepsConnectingAfterASignal) {
  const auto name = base::random_name().value();
  const base::UniqueFd full(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto [address, size] = address_of(name);
  ASSERT_EQ(::bind(full.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  const base::UniqueFd first = connect_to(name);  // now the queue is full
  auto client = FdClient::open().value();
  const Interruptions interruptions;
  const auto fds = client.fetch(name, 1, milliseconds{300}, SingleBootstrap());
  ASSERT_FALSE(fds);
  EXPECT_EQ(fds.error().code, std::errc::timed_out) << fds.error().text;
}

}  // namespace
}  // namespace shmem
