// SPDX-License-Identifier: Apache-2.0
// What a program's memory is a mapping of, and how other processes reach it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <sstream>
#include <thread>
#include <vector>

#include "base/memfd.hpp"
#include "shmem/memory/callers_memory.hpp"
#include "shmem/memory/fd_exchange.hpp"
#include "shmem/memory/own_mappings.hpp"
#include "shmem/memory/process_memory.hpp"

namespace shmem {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::size_t kFilePage = 4096;

/// Whether the kernel copies memory between processes: qemu-user does not, nor do some containers.
bool copies_memory() {
  std::byte here{};
  std::byte there{42};
  const auto self = ProcessMemory::open(::getpid());
  return self && self->read(&here, reinterpret_cast<std::uintptr_t>(&there), {.block = 1}) == std::errc{} &&
         here == there;
}

constexpr const char* kMaps =
    "00001000-00003000 rw-s 00005000 00:01 77                         /memfd:a b (deleted)\n"
    "00003000-00004000 rw-s 00007000 00:01 77                         /memfd:a b (deleted)\n"
    "00004000-00005000 rw-s 00001000 00:01 77                         /memfd:a b (deleted)\n"
    "00005000-00006000 rw-p 00000000 00:00 0 \n"
    "00008000-00009000 r--p 00000000 fe:02 9                          /usr/lib/x\n";

Result<std::vector<OwnMapping>> look(std::uintptr_t begin, std::size_t bytes) {
  std::istringstream maps(kMaps);
  return mappings_in(maps, begin, bytes);
}

TEST(OwnMappings, AreThoseThatContainTheBytes) {
  const auto two = look(0x2ff0, 0x20);
  ASSERT_TRUE(two);
  ASSERT_THAT(*two, SizeIs(2));
  const OwnMapping& first = two->front();
  EXPECT_EQ(first.begin, 0x1000U);
  EXPECT_EQ(first.end, 0x3000U);
  EXPECT_TRUE(first.readable && first.writable && first.shared);
  EXPECT_EQ(first.offset, 0x5000U);
  EXPECT_EQ(first.device, makedev(0, 1));
  EXPECT_EQ(first.inode, 77U);
  EXPECT_EQ(first.path, "/memfd:a b (deleted)");
  EXPECT_THAT(*look(0x1000, 0x2000), SizeIs(1));
  EXPECT_THAT(*look(0x3fff, 1), SizeIs(1));
  const auto last = look(0x8000, 1);
  ASSERT_TRUE(last);
  EXPECT_FALSE(last->front().writable || last->front().shared);
  EXPECT_EQ(last->front().device, makedev(0xfe, 2));
}

TEST(OwnMappings, LeaveNoByteOut) {
  for (const auto& [begin, bytes, at] : {std::tuple{0x0UL, 0x10UL, "0x0"}, std::tuple{0x5000UL, 0x1001UL, "0x6000"},
                                         std::tuple{0x6000UL, 1UL, "0x6000"}, std::tuple{0x9000UL, 1UL, "0x9000"}}) {
    const auto found = look(begin, bytes);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, std::errc::bad_address);
    EXPECT_THAT(found.error().text, HasSubstr(std::string("there is no memory at ") + at));
  }
}

TEST(OwnMappings, AreOneFileIfTheyFollowEachOtherThere) {
  EXPECT_TRUE(are_one_file(*look(0x1000, 0x3000)));
  EXPECT_FALSE(are_one_file(*look(0x1000, 0x4000)));  // another part of the file
  EXPECT_FALSE(are_one_file(*look(0x4000, 0x2000)));  // private memory after it
  EXPECT_FALSE(are_one_file(*look(0x5000, 0x10)));
}

/// A mapping of a file.
struct Mapped {
  explicit Mapped(int fd, std::size_t bytes = 2 * kFilePage, int protection = PROT_READ | PROT_WRITE,
                  int flags = MAP_SHARED)
      : mapping(::mmap(nullptr, bytes, protection, flags, fd, 0), bytes) {}
  [[nodiscard]] std::span<std::byte> part(std::size_t begin, std::size_t bytes) const {
    return mapping.bytes().subspan(begin, bytes);
  }
  base::Mapping mapping;
};

base::UniqueFd memfd(std::size_t bytes = 2 * kFilePage) {
  return *base::create_memfd("callers", bytes);
}

TEST(CallersMemory, IsThePartOfItsFile) {
  const auto fd = memfd();
  const Mapped memory(fd.get());
  const auto part = file_of(memory.part(100, kFilePage), fd.get(), 100);
  ASSERT_TRUE(part) << part.error().text;
  EXPECT_EQ(part->offset, 100U);
  EXPECT_NE(part->file.get(), fd.get());
  const auto window = map_window(part->file.get(), part->offset, kFilePage);
  ASSERT_TRUE(window) << window.error().text;
  std::memcpy(memory.part(100, 4).data(), "abc", 4);
  EXPECT_STREQ(reinterpret_cast<const char*>(window->data), "abc");
  window->data[kFilePage - 1] = std::byte{9};
  EXPECT_EQ(memory.part(100, kFilePage).back(), std::byte{9});
}

TEST(CallersMemory, IsFoundAmongTheOpenFiles) {
  const auto fd = memfd();
  const Mapped memory(fd.get());
  const auto part = file_of(memory.part(kFilePage + 8, 16), -1, 0);
  ASSERT_TRUE(part) << part.error().text;
  EXPECT_TRUE(part->file);
  EXPECT_EQ(part->offset, kFilePage + 8);
}

TEST(CallersMemory, WithoutAFileIsPrivate) {
  std::vector<std::byte> allocated(100'000);
  const Mapped copied(memfd().get(), 2 * kFilePage, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  for (const auto memory : {std::span(allocated), copied.part(0, kFilePage)}) {
    const auto part = file_of(memory, -1, 0);
    ASSERT_TRUE(part) << part.error().text;
    EXPECT_FALSE(part->file);
  }
}

/// The error of a call, and a part of its text.
void fails(const Result<FilePart>& part, std::errc code, const std::string& text) {
  ASSERT_FALSE(part) << text;
  EXPECT_EQ(part.error().code, code) << part.error().text;
  EXPECT_THAT(part.error().text, HasSubstr(text));
}

TEST(CallersMemory, ThatCannotBeSharedIsRefused) {
  const auto fd = memfd();
  const auto other = memfd();
  const Mapped memory(fd.get());
  const auto all = memory.part(0, 2 * kFilePage);
  fails(file_of({}, -1, 0), std::errc::invalid_argument, "0 bytes at");
  fails(file_of(memory.part(0, 0), fd.get(), 0), std::errc::invalid_argument, "0 bytes at");
  fails(file_of({all.data(), SIZE_MAX}, -1, 0), std::errc::invalid_argument, "are no memory");
  fails(file_of(all, -7, 0), std::errc::invalid_argument, "-7 is no file descriptor");
  fails(file_of(all, 987, 0), std::errc::bad_file_descriptor, "987");
  fails(file_of(all, other.get(), 0), std::errc::invalid_argument, "is not a shared mapping of file descriptor");
  fails(file_of(all, fd.get(), kFilePage), std::errc::invalid_argument, "is byte 0 of file descriptor");
  const Mapped copied(fd.get(), 2 * kFilePage, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  fails(file_of(copied.part(0, kFilePage), fd.get(), 0), std::errc::invalid_argument, "is not a shared mapping");
  const Mapped constant(fd.get(), 2 * kFilePage, PROT_READ);
  fails(file_of(constant.part(0, kFilePage), fd.get(), 0), std::errc::permission_denied, "PROT_READ and PROT_WRITE");
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  fails(file_of(all, null.get(), 0), std::errc::operation_not_supported, "neither a memfd nor");
}

TEST(CallersMemory, BeyondTheEndOfItsFileIsRefused) {
  const base::UniqueFd fd(::memfd_create("short", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), kFilePage), 0);
  const Mapped memory(fd.get());
  fails(file_of(memory.part(0, kFilePage + 1), fd.get(), 0), std::errc::invalid_argument, "of a file of 4096");
  if (copies_memory()) {
    fails(file_of(memory.part(kFilePage, 1), -1, 0), std::errc::operation_not_supported, "is not ordinary memory");
  }
  EXPECT_FALSE(map_window(fd.get(), 0, kFilePage + 1));
  EXPECT_FALSE(map_window(fd.get(), UINT64_MAX - 10, 100));
  EXPECT_TRUE(map_window(fd.get(), kFilePage - 1, 1));
}

TEST(CallersMemory, WindowsAreOfFilesInMemoryOnly) {
  const base::UniqueFd null(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  const auto window = map_window(null.get(), 0, kFilePage);
  ASSERT_FALSE(window);
  EXPECT_EQ(window.error().code, std::errc::operation_not_supported);
}

/// A process with memory of its own at the same address as in this one.
class Child {
 public:
  explicit Child(std::vector<std::byte>& memory) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      memory[0] = std::byte{42};
      static_cast<void>(!::write(pipe[1], "x", 1));
      ::pause();
      ::_exit(0);
    }
    char ready = 0;
    EXPECT_EQ(::read(pipe[0], &ready, 1), 1);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(std::exchange(pid_, 0), nullptr, 0);
    }
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(ProcessMemory, IsCopiedInBlocks) {
  if (!copies_memory()) {
    GTEST_SKIP() << "process_vm_readv is not available";
  }
  std::vector<std::byte> memory(100'000);
  const auto there = reinterpret_cast<std::uintptr_t>(memory.data());
  const Child child(memory);
  const auto process = ProcessMemory::open(child.pid());
  ASSERT_TRUE(process) << process.error().text;
  std::byte first{};
  ASSERT_EQ(process->read(&first, there, {.block = 1}), std::errc{});
  EXPECT_EQ(first, std::byte{42});
  // More blocks than one system call takes.
  std::vector<std::byte> data(3 * 2500);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>(i * 7);
  }
  const CopyBlocks out{.here_step = 3, .there_step = 40, .block = 3, .count = 2500};
  ASSERT_EQ(process->write(there, data.data(), out), std::errc{});
  std::vector<std::byte> all(memory.size());
  ASSERT_EQ(process->read(all.data(), there, {.block = all.size()}), std::errc{});
  std::vector<std::byte> back(5 * 2500);
  ASSERT_EQ(process->read(back.data(), there, {.here_step = 5, .there_step = 40, .block = 3, .count = 2500}),
            std::errc{});
  for (std::size_t i = 0; i < 2500; ++i) {
    ASSERT_EQ(std::memcmp(&all[40 * i], &data[3 * i], 3), 0) << i;
    ASSERT_EQ(all[40 * i + 3], std::byte{0});
    ASSERT_EQ(std::memcmp(&back[5 * i], &data[3 * i], 3), 0) << i;
    ASSERT_EQ(back[5 * i + 3], std::byte{0});
  }
  EXPECT_EQ(process->write(there, data.data(), {.block = 0}), std::errc{});
  EXPECT_EQ(memory[0], std::byte{0});  // of this process
}

TEST(ProcessMemory, IsWrittenInPieces) {
  if (!copies_memory()) {
    GTEST_SKIP() << "process_vm_writev is not available";
  }
  std::vector<std::byte> memory(100'000);
  const auto there = reinterpret_cast<std::uintptr_t>(memory.data());
  const Child child(memory);
  const auto process = ProcessMemory::open(child.pid());
  ASSERT_TRUE(process) << process.error().text;
  std::vector<std::byte> data(4096);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>(i * 7);
  }
  // More pieces than one system call takes, of 1 to 16 bytes, from the end to the beginning.
  std::vector<CopyPiece> pieces;
  for (std::size_t i = 2500; i-- > 0;) {
    pieces.push_back({there + 40 * i, &data[i], 1 + i % 16});
  }
  ASSERT_EQ(process->write(pieces), std::errc{});
  std::vector<std::byte> all(memory.size());
  ASSERT_EQ(process->read(all.data(), there, {.block = all.size()}), std::errc{});
  for (std::size_t i = 0; i < 2500; ++i) {
    ASSERT_EQ(std::memcmp(&all[40 * i], &data[i], 1 + i % 16), 0) << i;
    ASSERT_EQ(all[40 * i + 1 + i % 16], std::byte{0});
  }
  EXPECT_EQ(process->write({}), std::errc{});
  // The kernel stops at the piece that is not there.
  pieces[1].there = kFilePage;
  EXPECT_EQ(process->write(std::span(pieces).first(3)), std::errc::bad_address);
}

TEST(ProcessMemory, ThatIsNotThereIsAnError) {
  if (!copies_memory()) {
    GTEST_SKIP() << "process_vm_readv is not available";
  }
  std::vector<std::byte> memory(100);
  Child child(memory);
  const auto process = ProcessMemory::open(child.pid());
  ASSERT_TRUE(process);
  std::byte copy{};
  EXPECT_EQ(process->read(&copy, 4096, {.block = 1}), std::errc::bad_address);
  child.end();
  EXPECT_EQ(process->read(&copy, reinterpret_cast<std::uintptr_t>(memory.data()), {.block = 1}), std::errc::owner_dead);
  EXPECT_FALSE(ProcessMemory::open(0));
}

using Peers = std::vector<std::optional<FdExchange::Peer>>;

/// The ends of `count` PEs, of which those with an even number give a descriptor.
struct Ends {
  explicit Ends(int count) {
    for (int pe = 0; pe < count; ++pe) {
      ends.push_back(*FdExchange::open());
      files.push_back(memfd(kFilePage * static_cast<std::size_t>(pe + 1)));
      peers.push_back(FdExchange::Peer{ends.back().address(), pe % 2 == 0});
    }
  }
  Result<std::vector<base::UniqueFd>> run(int pe, const FdExchange::Check& check) {
    const auto index = static_cast<std::size_t>(pe);
    Peers others = peers;
    others[index].reset();
    return ends[index].exchange(pe % 2 == 0 ? files[index].get() : -1, pe, others, check);
  }
  std::vector<FdExchange> ends;
  std::vector<base::UniqueFd> files;
  Peers peers;
};

off_t size_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_size : -1;
}

TEST(FdExchange, GivesEachPeTheDescriptorsOfTheOthers) {
  constexpr int kPes = 7;
  Ends all(kPes);
  std::vector<std::thread> threads;
  for (int pe = 0; pe < kPes; ++pe) {
    threads.emplace_back([&all, pe] {
      const auto fds = all.run(pe, [](const std::vector<int>&) { return Result<void>(); });
      ASSERT_TRUE(fds) << fds.error().text;
      for (int other = 0; other < kPes; ++other) {
        const auto& fd = (*fds)[static_cast<std::size_t>(other)];
        EXPECT_EQ(static_cast<bool>(fd), other != pe && other % 2 == 0);
        EXPECT_TRUE(!fd || size_of(fd.get()) == static_cast<off_t>(kFilePage) * (other + 1));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST(FdExchange, EndsWhenTheCheckDoes) {
  Ends all(3);
  std::vector<int> missing;
  const auto fds = all.run(0, [&](const std::vector<int>& awaited) {
    missing = awaited;
    return Result<void>(fail(std::errc::owner_dead, "gone"));
  });
  ASSERT_FALSE(fds);
  EXPECT_EQ(fds.error().text, "gone");
  EXPECT_EQ(missing, std::vector{2});
}

TEST(FdExchange, IgnoresThoseWhoDoNotKnowTheSecret) {
  Ends all(3);
  // PE 2's place is taken by one that knows only the name of the socket.
  auto impostor = *FdExchange::open();
  Peers wrong(3);
  wrong[0] = FdExchange::Peer{{all.ends[0].address().name, impostor.address().secret}, false};
  const auto sent = impostor.exchange(all.files[1].get(), 2, wrong, [](const auto&) { return Result<void>(); });
  EXPECT_TRUE(sent);
  const auto fds = all.run(0, [](const std::vector<int>&) { return Result<void>(fail(std::errc::timed_out, "late")); });
  ASSERT_FALSE(fds);
  EXPECT_EQ(fds.error().text, "late");
}

}  // namespace
}  // namespace shmem
