// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <thread>

#include "shmem/bootstrap/single.hpp"
#include "shmem/memory/fd_passing.hpp"
#include "shmem/memory/memfd.hpp"
#include "tests/unit/shmem/bootstrap_processes.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::in_processes;

constexpr seconds kLimit{20};

auto soon(milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

ino_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/// "" if PE `pe` gets `memory`.
std::string fetch(const RandomName& name, int pe, const std::array<int, 2>& memory) {
  auto client = FdClient::open();
  if (!client) return client.error().text;
  const auto fds = client->fetch(name, pe, kLimit);
  if (!fds) return fds.error().text;
  if (fds->size() != memory.size()) return std::to_string(fds->size()) + " descriptors";
  const bool same = std::equal(fds->begin(), fds->end(), memory.begin(),
                               [](const UniqueFd& a, int b) { return inode_of(a.get()) == inode_of(b); });
  return same ? "" : "other files";
}

/// A connection of somebody who knows the name.
UniqueFd connect_to(const RandomName& name) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, "shmem-", 6);
  std::memcpy(address.sun_path + 7, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 7 + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) socket.reset();
  return socket;
}

class FdPassing : public ::testing::Test {
 protected:
  FdServer server_ = FdServer::open().value();
  UniqueFd first_ = create_memfd("test", 4096).value();
  UniqueFd second_ = create_memfd("test", 4096).value();
  std::array<int, 2> memory_{first_.get(), second_.get()};
  SingleBootstrap bootstrap_;
};

TEST_F(FdPassing, GivesTheDescriptorsToEachPe) {
  const auto texts = in_processes(4, [&](int pe) -> std::string {
    if (pe > 0) return fetch(server_.name(), pe, memory_);
    const auto served = server_.serve(memory_, 4, soon(kLimit), bootstrap_);
    return served ? "" : served.error().text;
  });
  EXPECT_THAT(texts, ::testing::Each(::testing::IsEmpty()));
}

TEST_F(FdPassing, AnswersAPeOnce) {
  const auto texts = in_processes(3, [&](int pe) -> std::string {
    if (pe == 0) {
      const auto served = server_.serve(memory_, 3, soon(kLimit), bootstrap_);
      return served ? "" : served.error().text;
    }
    if (pe == 2) return "";
    const std::string first = fetch(server_.name(), 1, memory_);
    const std::string second = fetch(server_.name(), 1, memory_);
    return first + "/" + second + "/" + fetch(server_.name(), 2, memory_);
  });
  EXPECT_EQ(texts[0], "");
  EXPECT_THAT(texts[1], ::testing::MatchesRegex("/PE 0 closed the connection .*/"));
}

TEST_F(FdPassing, AnswersNoStrangers) {
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    if (pe == 0) {
      const auto served = server_.serve(memory_, 2, soon(kLimit), bootstrap_);
      return served ? "" : served.error().text;
    }
    const UniqueFd silent = connect_to(server_.name());
    ::shutdown(silent.get(), SHUT_WR);
    for (const std::int32_t nobody : {0, 2, -1, 1 << 20}) {
      const UniqueFd liar = connect_to(server_.name());
      ::send(liar.get(), &nobody, sizeof(nobody), MSG_NOSIGNAL);
    }
    const UniqueFd brief = connect_to(server_.name());
    ::send(brief.get(), "x", 1, MSG_NOSIGNAL);
    return fetch(server_.name(), 1, memory_);
  });
  EXPECT_THAT(texts, ::testing::Each(::testing::IsEmpty()));
}

TEST_F(FdPassing, AnswersNoOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto texts = in_processes(2, [&](int pe) -> std::string {
    if (pe == 0) {
      const auto served = server_.serve(memory_, 2, soon(seconds{1}), bootstrap_);
      return served ? "served" : served.error().text;
    }
    if (::setuid(65534) != 0) return "setuid";
    return fetch(server_.name(), 1, memory_);
  });
  EXPECT_THAT(texts[0], HasSubstr("PE 1 did not fetch"));
  EXPECT_THAT(texts[1], HasSubstr("belongs to another user"));
}

TEST_F(FdPassing, NamesThoseThatDoNotCome) {
  const auto served = server_.serve(memory_, 5, soon(milliseconds{20}), bootstrap_);
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, std::errc::timed_out);
  EXPECT_THAT(served.error().text, HasSubstr("PEs 1-4 did not fetch"));
}

TEST_F(FdPassing, EndsWhenTheJobDoes) {
  bootstrap_.abort(1, "somebody died");
  const auto served = server_.serve(memory_, 2, soon(kLimit), bootstrap_);
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().text, "somebody died");
}

TEST_F(FdPassing, NoticesThatTheLeaderIsGone) {
  std::optional<FdServer> gone = FdServer::open().value();
  const RandomName name = gone->name();
  gone.reset();
  EXPECT_THAT(fetch(name, 1, memory_), HasSubstr("cannot reach PE 0"));
}

TEST_F(FdPassing, DoesNotWaitForALeaderThatHangs) {
  auto client = FdClient::open().value();
  const auto fd = client.fetch(server_.name(), 1, milliseconds{50});  // nobody serves
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, std::errc::timed_out);
}

}  // namespace
}  // namespace shmem
