// SPDX-License-Identifier: Apache-2.0
// Closing the file descriptors that clients passed, even if a close blocks.
#include "fake_device/closer.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using fake_device::Closer;
using fake_device::FdAccount;
using fake_device::Given;

constexpr unsigned kLimit = 20'000;  // milliseconds

/// Slow closes block while this eventfd is 0.
int gate() {
  static const int fd = ::eventfd(0, EFD_CLOEXEC);
  return fd;
}

/// Stands for a file on a file system that its client serves. close_slowly() recognizes it by its size.
base::UniqueFd slow_file() {
  base::UniqueFd fd(::memfd_create("slow", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(fd.get(), 1), 0);
  return fd;
}
base::UniqueFd quick_file() {
  return base::UniqueFd(::memfd_create("quick", MFD_CLOEXEC));
}

void close_slowly(int fd) {
  if (::lseek(fd, 0, SEEK_END) == 1) {
    std::uint64_t count = 0;
    while (::read(gate(), &count, sizeof count) < 0 && errno == EINTR) {
      // As with FUSE, whose server has to answer.
    }
    [[maybe_unused]] const auto given = ::write(gate(), &count, sizeof count);
  }
  ::close(fd);
}

// The number of a closed file may belong to another one at once (a new thread opens files), so its name tells. No
// system call on the descriptor: ThreadSanitizer would see a race with close().
bool is_open(int fd, const std::string& name) {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none).string().find(name) !=
         std::string::npos;
}

bool becomes_closed(int fd, const std::string& name) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimit);
  while (is_open(fd, name) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  return !is_open(fd, name);
}

/// Whether a quick file of the account is closed soon.
bool closes_a_file(Closer& closer, const std::shared_ptr<FdAccount>& account, bool is_connection = false) {
  static int number = 0;
  const std::string name = "quick-" + std::to_string(++number) + "-";
  int fd = -1;
  {
    const Given quick(closer, account, base::UniqueFd(::memfd_create(name.c_str(), MFD_CLOEXEC)), is_connection);
    fd = quick.get();
    EXPECT_TRUE(is_open(fd, name));
  }
  return becomes_closed(fd, name);
}

bool becomes_stuck(const Closer& closer, const fake_device::FdUser& user) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimit);
  while (!closer.stuck(user) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  return closer.stuck(user);
}

TEST(Closer, ClosesOthersWhileAllFilesOfAUserAreSlow) {
  constexpr std::size_t kFiles = 1000;  // half of them are for clients
  gate();                               // now, so that it does not get the number of a file that was closed
  Closer closer(kFiles, close_slowly);
  const auto account = std::make_shared<FdAccount>();
  const auto same_user = std::make_shared<FdAccount>(account->user);
  const auto other = std::make_shared<FdAccount>();
  for (unsigned count = 0; count < kFiles / 4; ++count) {
    const Given slow(closer, count % 2 == 0 ? account : same_user, slow_file());
  }
  for (int count = 0; count < 100; ++count) {
    ASSERT_TRUE(closes_a_file(closer, other)) << "after " << count;
  }
  EXPECT_TRUE(closes_a_file(closer, same_user, /*is_connection=*/true));
  EXPECT_EQ(account->open, kFiles / 8) << "a file that is being closed still counts";
  EXPECT_FALSE(closer.done(0));
  EXPECT_TRUE(becomes_stuck(closer, *account->user));
  EXPECT_FALSE(closer.stuck(*other->user));
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(gate(), &one, sizeof one), ssize_t{sizeof one});
  EXPECT_TRUE(closer.done(kLimit));
  EXPECT_EQ(account->open, 0U);
  EXPECT_EQ(same_user->open, 0U);
  EXPECT_EQ(other->open, 0U);
  EXPECT_FALSE(closer.stuck(*account->user));
}

/// A unix socket in which a message with a TCP socket lies unread that lingers for an hour. `peers` keep the other ends
/// of the TCP sockets, which do not read.
base::UniqueFd socket_with_a_lingering_one(std::vector<base::UniqueFd>& peers) {
  const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  const base::UniqueFd lingering(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(listener.get(), place, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), place, &size) != 0 || ::connect(lingering.get(), place, size) != 0) {
    return base::UniqueFd();
  }
  peers.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const linger hour{.l_onoff = 1, .l_linger = 3600};
  ::setsockopt(lingering.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof hour);
  const std::vector<char> bytes(0x10000);
  while (::send(lingering.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return base::UniqueFd();
  }
  const base::UniqueFd sender(ends[0]);
  char byte = 0;
  iovec text{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = lingering.get();
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  EXPECT_EQ(::sendmsg(sender.get(), &message, MSG_NOSIGNAL), 1);
  return base::UniqueFd(ends[1]);
}

TEST(Closer, DoesNotWaitForSocketsThatLieUnreadInOthers) {
  Closer closer;
  const auto account = std::make_shared<FdAccount>();
  std::vector<base::UniqueFd> peers;
  for (unsigned count = 0; count < 32; ++count) {
    auto socket = socket_with_a_lingering_one(peers);
    if (!socket) {
      GTEST_SKIP() << "a TCP connection to this host: " << std::strerror(errno);
    }
    const Given given(closer, account, std::move(socket));
  }
  EXPECT_TRUE(closer.done(kLimit)) << account->open << " are open";
}

TEST(Closer, IsFullAtItsLimit) {
  Closer closer(4);
  const auto account = std::make_shared<FdAccount>();
  std::vector<Given> given;
  given.emplace_back(closer, account, quick_file());
  EXPECT_FALSE(closer.full(*account->user));
  given.emplace_back(closer, account, quick_file());
  EXPECT_TRUE(closer.full(*account->user));
  EXPECT_FALSE(closer.exhausted()) << "refused descriptors can still be received";
  given.emplace_back(closer, account, quick_file());
  EXPECT_TRUE(closer.exhausted());
  given.clear();
  EXPECT_TRUE(closer.done(kLimit));
  EXPECT_FALSE(closer.full(*account->user));
}

TEST(Closer, LeavesRoomToOtherUsers) {
  Closer closer(8);
  const auto account = std::make_shared<FdAccount>();
  const auto same_user = std::make_shared<FdAccount>(account->user);
  const auto other = std::make_shared<FdAccount>();
  std::vector<Given> given;
  given.emplace_back(closer, account, quick_file());
  given.emplace_back(closer, account, quick_file());
  EXPECT_FALSE(closer.full(*same_user->user));
  given.emplace_back(closer, same_user, quick_file());
  EXPECT_TRUE(closer.full(*account->user));
  EXPECT_FALSE(closer.overfull(*account->user)) << "refused descriptors can still be received";
  EXPECT_FALSE(closer.full(*other->user));
  given.emplace_back(closer, other, quick_file());
  EXPECT_TRUE(closer.full(*other->user));
  given.emplace_back(closer, same_user, quick_file());
  EXPECT_TRUE(closer.overfull(*account->user));
  EXPECT_FALSE(closer.overfull(*other->user));
  EXPECT_FALSE(closer.exhausted());
}

/// How often threads of this process other than the caller have gone to sleep.
long sleeps_of_others() {
  rusage all{};
  rusage own{};
  ::getrusage(RUSAGE_SELF, &all);
  ::getrusage(RUSAGE_THREAD, &own);
  return all.ru_nvcsw - own.ru_nvcsw;
}

TEST(Closer, WakesNoThreadForEachFile) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "TSan makes locks slow: threads go to sleep because they meet at one";
#endif
  constexpr int kFiles = 20'000;
  Closer closer;
  const auto account = std::make_shared<FdAccount>();
  const auto begin = std::chrono::steady_clock::now();
  const long before = sleeps_of_others();
  for (int count = 0; count < kFiles; ++count) {
    const Given quick(closer, account, quick_file());
  }
  const long sleeps = sleeps_of_others() - before;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  EXPECT_LT(sleeps, kFiles / 8 + 3 * took.count()) << "in " << took.count() << " ms";
  EXPECT_TRUE(closer.done(kLimit));
}

// Another mapping may get the address at once, so the file tells.
bool is_mapped(const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  return text.find("/memfd:" + file) != std::string::npos;
}

TEST(Closer, UnmapsMemory) {
  Closer closer;
  const auto page = static_cast<std::size_t>(::getpagesize());
  const base::UniqueFd fd(::memfd_create("mapped", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(page)), 0);
  const Given file(closer, std::make_shared<FdAccount>(), quick_file());
  void* const data = ::mmap(nullptr, page, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(data, MAP_FAILED);
  {
    const Given memory(file, base::Mapping(data, page));
    EXPECT_TRUE(is_mapped("mapped"));
  }
  ASSERT_TRUE(closer.done(kLimit));
  EXPECT_FALSE(is_mapped("mapped"));
}

}  // namespace
