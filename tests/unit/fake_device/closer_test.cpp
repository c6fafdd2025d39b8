// SPDX-License-Identifier: Apache-2.0
// Closing the file descriptors that clients passed, even if a close blocks.
#include "fake_device/closer.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

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
    [[maybe_unused]] const auto got = ::read(gate(), &count, sizeof count);
    [[maybe_unused]] const auto given = ::write(gate(), &count, sizeof count);
  }
  ::close(fd);
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

bool becomes_closed(int fd) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimit);
  while (is_open(fd) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  return !is_open(fd);
}

TEST(Closer, ClosesOthersWhileSomeAreSlow) {
  Closer closer(1000, close_slowly);
  const auto account = std::make_shared<FdAccount>();
  const auto other = std::make_shared<FdAccount>();
  for (unsigned count = 0; count < Closer::kMostThreads - 1; ++count) {
    const Given slow(closer, account, slow_file());
  }
  for (int count = 0; count < 100; ++count) {
    int fd = -1;
    {
      const Given quick(closer, other, quick_file());
      fd = quick.get();
      ASSERT_TRUE(is_open(fd));
    }
    ASSERT_TRUE(becomes_closed(fd)) << "after " << count;
  }
  EXPECT_EQ(account->open, Closer::kMostThreads - 1) << "a file that is being closed still counts";
  EXPECT_FALSE(closer.done(0));
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(gate(), &one, sizeof one), ssize_t{sizeof one});
  EXPECT_TRUE(closer.done(kLimit));
  EXPECT_EQ(account->open, 0U);
  EXPECT_EQ(other->open, 0U);
}

TEST(Closer, IsFullAtItsLimit) {
  Closer closer(4);
  const auto account = std::make_shared<FdAccount>();
  std::vector<Given> given;
  given.emplace_back(closer, account, quick_file());
  EXPECT_FALSE(closer.full());
  given.emplace_back(closer, account, quick_file());
  EXPECT_TRUE(closer.full());
  EXPECT_FALSE(closer.exhausted()) << "refused descriptors can still be received";
  given.emplace_back(closer, account, quick_file());
  EXPECT_TRUE(closer.exhausted());
  given.clear();
  EXPECT_TRUE(closer.done(kLimit));
  EXPECT_FALSE(closer.full());
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
