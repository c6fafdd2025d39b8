// SPDX-License-Identifier: Apache-2.0
// Invalid descriptors of every kind, with every message that may carry one.
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "tests/integration/fake_device/hostile/bystanders.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::Fd;
using raw::milliseconds;
using raw::Port;

constexpr std::uint64_t kIova = 0x40000000;

struct Kind {
  const char* name;
  Fd fd;
};

std::string link_of(const Fd& fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

Fd sealed_memory() {
  Fd memory = raw::make_memfd(0x10000);
  ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE);
  return memory;
}

/// Descriptors that cannot hold a release flag.
std::vector<Kind> no_memory(const std::string& file) {
  std::array<int, 2> pipe{-1, -1};
  std::array<int, 2> sockets{-1, -1};
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  const Fd other_end(sockets[1]);
  const Fd memory = raw::make_memfd(0x10000);
  std::vector<Kind> kinds;
  const auto add = [&](const char* name, int fd) {
    EXPECT_GE(fd, 0) << name;
    kinds.push_back({.name = name, .fd = Fd(fd)});
  };
  add("pipe, for reading", pipe[0]);
  add("pipe, for writing", pipe[1]);
  add("socket", sockets[0]);
  add("folder", ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  add("/dev/null", ::open("/dev/null", O_RDWR | O_CLOEXEC));
  add("/dev/zero", ::open("/dev/zero", O_RDWR | O_CLOEXEC));
  add("path", ::open("/", O_PATH | O_CLOEXEC));
  add("path of memory", ::open(link_of(memory).c_str(), O_PATH | O_CLOEXEC));
  add("file of /proc", ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  add("timer", ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  add("epoll", ::epoll_create1(EPOLL_CLOEXEC));
  add("empty memory", raw::make_memfd(0).release());
  add("file", ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  return kinds;
}

class Descriptors : public raw::Bystanders {};

TEST_F(Descriptors, ThatAreNotMemoryCannotBeMapped) {
  {
    Port port(path());
    auto kinds = no_memory(folder().file("file"));
    kinds.push_back({.name = "eventfd", .fd = raw::make_eventfd()});
    for (const auto& [name, fd] : kinds) {
      SCOPED_TRACE(name);
      for (const std::uint32_t flags : {1U, 2U, 3U}) {
        EXPECT_EQ(port.map_dma(kIova, 0x1000, 0, fd.get(), flags), EINVAL);
      }
    }
    expect_unharmed();
  }
  expect_no_files_left();
}

TEST_F(Descriptors, ForReadOnlyMemoryAreMappedForReadingOnly) {
  {
    Port port(path());
    const auto memory = raw::make_memfd(0x10000);
    const Fd read_only(::open(link_of(memory).c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(port.map_dma(kIova, 0x1000, 0, read_only.get(), 3), EACCES);
    EXPECT_EQ(port.map_dma(kIova, 0x1000, 0, read_only.get(), 2), EACCES);
    EXPECT_EQ(port.map_dma(kIova, 0x1000, 0, read_only.get(), 1), 0);
    const auto sealed = sealed_memory();
    EXPECT_EQ(port.map_dma(2 * kIova, 0x1000, 0, sealed.get(), 3), EACCES);
    EXPECT_EQ(port.map_dma(2 * kIova, 0x1000, 0, sealed.get(), 1), 0);
    const Fd write_only(::open(link_of(memory).c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_EQ(port.map_dma(3 * kIova, 0x1000, 0, write_only.get(), 3), EACCES);
    expect_unharmed();
  }
  expect_no_files_left();
}

TEST_F(Descriptors, ThatAreNotEventfdsCannotBeArmed) {
  {
    Port port(path());
    auto kinds = no_memory(folder().file("file"));
    kinds.push_back({.name = "memory", .fd = raw::make_memfd(0x1000)});
    for (const auto& [name, fd] : kinds) {
      SCOPED_TRACE(name);
      const auto good = raw::make_eventfd();
      for (const unsigned index : {GBA_IRQ_MSIX, GBA_IRQ_ERR, GBA_IRQ_REQ}) {
        EXPECT_EQ(port.arm(index, 0, std::array{fd.get()}), EINVAL);
      }
      EXPECT_EQ(port.arm(GBA_IRQ_MSIX, 0, std::array{good.get(), fd.get()}), EINVAL);
    }
    expect_unharmed();
  }
  expect_no_files_left();
}

TEST_F(Descriptors, ThatBelongToNoCommandAreRefused) {
  {
    Port port(path());
    for (const auto& [name, fd] : no_memory(folder().file("file"))) {
      SCOPED_TRACE(name);
      const std::array fds{fd.get()};
      for (std::uint16_t command = 0; command < 20; ++command) {
        if (command != VFIO_USER_DMA_MAP && command != VFIO_USER_DEVICE_SET_IRQS) {
          EXPECT_EQ(port.client().call(command, std::vector<std::byte>(16), fds).error(), EINVAL) << command;
        }
      }
      Client client(path());
      const vfio_user_version version{.major = 0, .minor = 0};
      EXPECT_EQ(client.call(VFIO_USER_VERSION, bytes_of(version), fds).error(), EINVAL);
    }
    expect_unharmed();
  }
  expect_no_files_left();
}

TEST_F(Descriptors, MayArriveWithAnyByteOfTheirMessage) {
  Port port(path());
  auto& client = port.client();
  const auto memory = raw::make_memfd(0x10000);
  const std::array fds{memory.get()};
  constexpr std::size_t kLength = sizeof(vfio_user_header) + sizeof(vfio_user_dma_map);
  for (std::size_t cut = 1; cut < kLength; ++cut) {
    const vfio_user_dma_map map{
        .argsz = sizeof map, .flags = 3, .offset = 0, .address = kIova + cut * 0x1000, .size = 0x1000};
    const auto frame = client.frame(VFIO_USER_DMA_MAP, bytes_of(map));
    ASSERT_TRUE(client.send_bytes(std::span(frame).first(cut)));
    ASSERT_TRUE(client.send_bytes(std::span(frame).subspan(cut), fds));
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error(), 0) << cut;
  }
  expect_unharmed();
}

TEST_F(Descriptors, SentOneByOneAreCountedTogether) {
  {
    Port port(path());
    auto& client = port.client();
    const auto eventfd = raw::make_eventfd();
    const std::array one{eventfd.get()};
    const vfio_user_irq_set set{.argsz = sizeof set, .flags = 0x24, .index = GBA_IRQ_MSIX, .start = 0, .count = 20};
    const auto frame = client.frame(VFIO_USER_DEVICE_SET_IRQS, bytes_of(set));
    for (std::size_t at = 0; at < frame.size(); ++at) {
      ASSERT_TRUE(
          client.send_bytes(std::span(frame).subspan(at, 1), at < 20 ? std::span(one) : std::span<const int>()));
    }
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error(), EINVAL) << "20 are more than max_msg_fds";
    expect_unharmed();
  }
  expect_no_files_left();
}

class FewFiles : public raw::Bystanders {
 protected:
  FewFiles() : Bystanders({}, milliseconds(1), {"bash", "-c", R"(ulimit -n 1024 && exec "$0" "$@")"}) {}
};

// Other clients have used up all files that the device may open. A client that sends one more gets only an error.
TEST_F(FewFiles, DoNotEndTheConnectionOfAnEarlierClient) {
  Port standing(path());
  const auto eventfd = raw::make_eventfd();
  const std::array one{eventfd.get()};
  ASSERT_EQ(standing.arm(GBA_IRQ_MSIX, 0, one), 0);
  {
    std::vector<std::unique_ptr<Port>> greedy;
    int error = 0;
    while (error == 0 && greedy.size() < 100) {
      greedy.push_back(std::make_unique<Port>(path()));
      for (unsigned vector = 0; vector < GBA_MSIX_VECTORS && error == 0; ++vector) {
        error = greedy.back()->arm(GBA_IRQ_MSIX, vector, one);
      }
    }
    EXPECT_EQ(error, ENFILE);
    EXPECT_LT(open_files(), 1000U);
    EXPECT_EQ(standing.arm(GBA_IRQ_MSIX, 1, one), ENFILE);
    EXPECT_EQ(standing.read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE) << "it is still served";
    expect_unharmed();
  }
  expect_files(100);
  EXPECT_EQ(standing.arm(GBA_IRQ_MSIX, 1, one), 0);
}

// A hundred connections bring all that a message may have, and more, and never end the message.
TEST_F(FewFiles, InUnfinishedMessagesOfAHundredConnectionsHarmNoOtherClient) {
  Port standing(path());
  const auto eventfd = raw::make_eventfd();
  const std::array one{eventfd.get()};
  const std::vector<int> many(16, eventfd.get());
  std::vector<std::unique_ptr<Client>> greedy;
  for (int i = 0; i < 100; ++i) {
    greedy.push_back(std::make_unique<Client>(path()));
    auto& client = *greedy.back();
    client.version();
    const auto frame = client.frame(VFIO_USER_DEVICE_SET_IRQS, std::vector<std::byte>(0x1000));
    ASSERT_TRUE(client.send_bytes(std::span(frame).first(sizeof(vfio_user_header))));
    for (int piece = 0; piece < 4; ++piece) {
      // Fails if the device has dropped this client, as it may.
      client.send_bytes(std::span(frame).last(1), many);
    }
    EXPECT_LT(open_files(), 1000U);
  }
  const int error = standing.arm(GBA_IRQ_MSIX, 0, one);
  EXPECT_TRUE(error == 0 || error == ENFILE) << error;
  EXPECT_EQ(standing.read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
  expect_unharmed();
  greedy.clear();
  expect_files(100);
  Port newcomer(path());
  EXPECT_EQ(newcomer.arm(GBA_IRQ_MSIX, 0, one), 0);
  EXPECT_EQ(standing.arm(GBA_IRQ_MSIX, 0, one), 0);
}

// The device disconnects a client whose message does not continue, and no other client.
TEST_F(Descriptors, InAnUnfinishedMessageAreClosed) {
  Port port(path());
  const auto eventfd = raw::make_eventfd();
  const auto frame = port.client().frame(VFIO_USER_DEVICE_SET_IRQS, std::vector<std::byte>(100));
  const auto start = raw::Clock::now();
  ASSERT_TRUE(port.client().send_bytes(std::span(frame).first(20), std::array{eventfd.get()}));
  EXPECT_EQ(port.client().receive(), std::nullopt);
  EXPECT_GE(raw::Clock::now() - start, std::chrono::seconds(9));
  expect_no_files_left();
  expect_unharmed();
}

// The pool of huge pages is empty, which shows only when the device stores to the page.
TEST_F(Descriptors, ForMissingHugePagesEndOnlyTheirClient) {
  constexpr std::size_t kHugePage = 0x200000;
  const Fd memory(::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_2MB));
  if (memory.get() < 0 || ::ftruncate(memory.get(), kHugePage) != 0) {
    GTEST_SKIP() << "a memfd of huge pages: " << std::strerror(errno);
  }
  if (std::ifstream free("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"); free.peek() != '0') {
    GTEST_SKIP() << "huge pages of 2 MiB are free here: the store would succeed";
  }
  Port port(path());
  const auto group = port.make_group(1);
  port.join(group, 0);
  ASSERT_EQ(port.map_dma(kIova, kHugePage, 0, memory.get()), 0);
  raw::seal(memory.get());
  ASSERT_EQ(port.write(GBA_GROUP_BASE(group.id) + GBA_GROUP_RELEASE_ADDR, kIova + 64), 0);
  port.arrive(group, 0, 1);
  EXPECT_EQ(port.client().receive(), std::nullopt) << "the connection is closed";
  expect_unharmed();
}

// The client keeps the eventfd that wakes the device, and may change its flags and its count.
TEST_F(Descriptors, ForTheKickMayBeMadeBlockingAndFilledByTheirClient) {
  Port port(path());
  const vfio_user_region_io_fds request{.argsz = 56, .flags = 0, .index = GBA_REGION_DOORBELLS, .count = 0};
  auto reply = port.client().call(VFIO_USER_DEVICE_GET_REGION_IO_FDS, bytes_of(request));
  const int kick = reply.fds.at(0).get();
  ASSERT_EQ(::fcntl(kick, F_SETFL, ::fcntl(kick, F_GETFL) & ~O_NONBLOCK), 0);
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(port.write(GBA_DOORBELL_WAKEUP, 1, 4, GBA_REGION_DOORBELLS), 0);
  }
  expect_unharmed();
  const std::uint64_t most = 0xfffffffffffffffe;
  [[maybe_unused]] const auto written = ::write(kick, &most, sizeof most);
  EXPECT_EQ(port.write(GBA_DOORBELL_WAKEUP, 1, 4, GBA_REGION_DOORBELLS), 0);
  expect_unharmed();
}

}  // namespace
