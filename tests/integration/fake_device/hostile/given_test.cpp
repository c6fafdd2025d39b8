// SPDX-License-Identifier: Apache-2.0
// The descriptors, memory and eventfds that clients give to the device must not delay other clients.
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "tests/integration/fake_device/hostile/attack.hpp"

namespace {

using raw::Attacker;
using raw::bytes_of;
using raw::Client;
using raw::Fd;
using raw::FileLimit;
using raw::GoOn;
using raw::milliseconds;
using raw::Port;

/// A TCP connection to this process, full of unread bytes: closing it takes `seconds`.
class LingeringSocket {
 public:
  explicit LingeringSocket(int seconds) {
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const linger lingering{.l_onoff = 1, .l_linger = seconds};
    const bool connected = ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                           ::listen(listener.get(), 1) == 0 &&
                           ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                           ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                           ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &lingering, sizeof lingering) == 0;
    error_ = connected ? 0 : errno;
    peer_ = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> bytes(0x10000);
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }

  /// 0, or why there is no connection.
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] int get() const { return socket_.get(); }
  /// Closes this process's descriptor, so that the receiver has the only one.
  void give_away() { socket_ = Fd(); }
  /// Call it if the socket was not received: the close in this process must not linger.
  void take_back() {
    const linger no{};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &no, sizeof no);
    socket_ = Fd();
  }

 private:
  Fd socket_;
  Fd peer_;
  int error_ = 0;
};

class Closing : public raw::Attacks {
 protected:
  void SetUp() override {
    if (const int error = LingeringSocket(1).error(); error != 0) {
      GTEST_SKIP() << "a TCP connection to this host: " << std::strerror(error);
    }
  }

  /// Sends lingering sockets with all but the last byte of the message that `frame` makes. If `complete`, the last byte
  /// follows when the client has closed its own descriptors of the sockets.
  void expect_no_wait(const std::function<std::vector<std::byte>(Client& client)>& frame, bool version = true,
                      bool complete = true, std::span<const int> others = {}) {
    std::mutex mutex;
    std::vector<LingeringSocket> given;  // destroying the peers ends close() in the device
    expect_harmless([&](const GoOn& go_on, unsigned) {
      LingeringSocket socket(1);
      Client client(path());
      if (version) {
        client.version();
      }
      const auto bytes = frame(client);
      std::vector<int> fds(others.begin(), others.end());
      fds.push_back(socket.get());
      client.send_bytes(std::span(bytes).first(bytes.size() - 1), fds);
      socket.give_away();
      if (complete) {
        client.send_bytes(std::span(bytes).last(1));
      }
      const std::lock_guard lock(mutex);
      given.push_back(std::move(socket));
      if (go_on()) {
        std::this_thread::sleep_for(milliseconds(10));
      }
    });
  }
};

TEST_F(Closing, DescriptorsSentWithVersionDelaysNoBarrier) {
  const vfio_user_version version{.major = 0, .minor = 0};
  expect_no_wait([&](Client& client) { return client.frame(VFIO_USER_VERSION, bytes_of(version)); },
                 /*version=*/false);
}

TEST_F(Closing, DescriptorsThatAreNotMemoryDelaysNoBarrier) {
  const vfio_user_dma_map map{.argsz = sizeof map, .flags = 3, .offset = 0, .address = 0, .size = 0x1000};
  expect_no_wait([&](Client& client) { return client.frame(VFIO_USER_DMA_MAP, bytes_of(map)); });
}

TEST_F(Closing, DescriptorsThatAreNotEventfdsDelaysNoBarrier) {
  const vfio_user_irq_set set{.argsz = sizeof set, .flags = 0x24, .index = GBA_IRQ_MSIX, .start = 0, .count = 1};
  expect_no_wait([&](Client& client) { return client.frame(VFIO_USER_DEVICE_SET_IRQS, bytes_of(set)); });
}

TEST_F(Closing, UnexpectedDescriptorsDelaysNoBarrier) {
  const vfio_user_device_info info{.argsz = sizeof info, .flags = 0, .num_regions = 0, .num_irqs = 0};
  expect_no_wait([&](Client& client) { return client.frame(VFIO_USER_DEVICE_GET_INFO, bytes_of(info)); });
}

// The kernel closes those that the device's buffer has no room for.
TEST_F(Closing, TooManyDescriptorsDelaysNoBarrier) {
  const auto eventfd = raw::make_eventfd();
  const std::vector<int> many(33, eventfd.get());
  expect_no_wait([](Client& client) { return client.frame(VFIO_USER_DEVICE_RESET, {}); }, /*version=*/true,
                 /*complete=*/true, many);
}

TEST_F(Closing, AConnectionWithAnUnfinishedMessageDelaysNoBarrier) {
  expect_no_wait([](Client& client) { return client.frame(VFIO_USER_DEVICE_RESET, {}); }, /*version=*/true,
                 /*complete=*/false);
}

// When a socket is closed, the kernel closes the descriptors of its unread messages.
TEST_F(Closing, AConnectionWithUnreadDescriptorsDelaysNoBarrier) {
  expect_no_wait([](Client& client) {
    auto impossible = client.frame(VFIO_USER_DEVICE_RESET, {});
    std::memset(impossible.data() + 4, 0xff, 4);  // its size: the device reads no more
    client.send_bytes(impossible);
    return client.frame(VFIO_USER_DEVICE_RESET, {});
  });
}

// They linger for an hour; the device closes all of them, and serves others meanwhile.
TEST_F(Closing, ManyConnectionsWithUnreadDescriptorsEnd) {
  std::vector<LingeringSocket> given;
  for (int count = 0; count < 1000 && given.size() < 64; ++count) {
    LingeringSocket socket(3600);
    Client client(path());
    client.version();
    auto impossible = client.frame(VFIO_USER_DEVICE_RESET, {});
    std::memset(impossible.data() + 4, 0xff, 4);  // its size: the device reads no more
    client.send_bytes(impossible);
    if (!client.send_bytes(client.frame(VFIO_USER_DEVICE_RESET, {}), std::array{socket.get()})) {
      socket.take_back();  // the device was faster
      continue;
    }
    socket.give_away();
    given.push_back(std::move(socket));
  }
  EXPECT_EQ(given.size(), 64U);
  Port newcomer(path());
  EXPECT_EQ(newcomer.arm(GBA_IRQ_MSIX, 0, std::array{raw::make_eventfd().get()}), 0);
  expect_unharmed();
  newcomer.client().close();
  expect_no_files_left();
}

class Given : public raw::Attacks {
 protected:
  using Attacks::Attacks;
};

// Sparse files: 128 TiB of address space for almost no memory.
TEST_F(Given, HugeSparseFilesLeaveRoomForOthers) {
  expect_harmless(
      [this](const GoOn& go_on, unsigned number) {
        Port port(path());
        std::vector<Fd> files;
        for (std::uint64_t size = std::uint64_t{64} << 40; size >= 0x2000; size /= 2) {
          files.push_back(raw::make_memfd(size));
          port.map_dma((std::uint64_t{1} << 47) + files.size() * 0x1000, 0x1000, 0, files.back().get());
        }
        std::uint64_t address = std::uint64_t{1} << 50;
        for (int count = 0; count < 3000 && go_on(); ++count) {
          port.map_dma(address += 0x2000, 0x1000, 0, -1);
        }
        while (go_on() && number > 0) {
          std::this_thread::sleep_for(milliseconds(10));
        }
      },
      4);
}

/// A device with a limit on its memory.
class Poor : public raw::Attacks {
 protected:
  Poor() : Attacks({}, {"bash", "-c", R"(ulimit -v 200000 && exec "$0" "$@")"}) {}
};

// Replies that a client does not read take the device's memory, up to a limit per connection.
TEST_F(Poor, DeviceDropsClientsThatItHasNoMemoryForAndServesTheOthers) {
  if (test_support::kSanitized) {
    GTEST_SKIP() << "a sanitizer needs more address space than this test leaves to the device";
  }
  std::vector<std::unique_ptr<Client>> greedy;
  const vfio_user_region_access access{.offset = 0, .region = GBA_REGION_DOORBELLS, .count = 0x10000};
  while (greedy.size() < 700 && device().output().find("out of memory") == std::string::npos &&
         device().output().find("bad_alloc") == std::string::npos) {
    greedy.push_back(std::make_unique<Client>(path()));
    limit_sends(*greedy.back());
    try {
      greedy.back()->version();
    } catch (const std::exception&) {
      continue;  // refused: the device has no memory left
    }
    for (int count = 0; count < 64; ++count) {
      greedy.back()->send_bytes(greedy.back()->frame(VFIO_USER_REGION_READ, bytes_of(access)));
    }
  }
  EXPECT_LT(greedy.size(), 700U) << "memory is not used up";
  expect_unharmed();
  greedy.clear();
  expect_unharmed();
  EXPECT_EQ(Port(path()).read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
}

// The device reads the page all the time, and would have to wait while a client takes the page away.
TEST_F(Given, DoorbellsCannotBeTakenAway) {
  Port port(path());
  vfio_user_region_info info{};
  info.argsz = sizeof info;
  for (info.index = GBA_REGION_DOORBELLS; info.index <= GBA_REGION_FLAGS; info.index += 2) {
    const auto region = port.client().call(VFIO_USER_DEVICE_GET_REGION_INFO, bytes_of(info));
    const int punched = ::fallocate(region.fds.at(0).get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 0x1000);
    if (punched == 0 && ::geteuid() != 0) {
      GTEST_SKIP() << "the device needs CAP_LINUX_IMMUTABLE to forbid it";
    }
    EXPECT_EQ(punched, -1);
  }
  expect_unharmed();
}

/// A client whose release flag lies in memory that it fills and takes away again, all the time. It answers the stores
/// that come as messages.
class HolePuncher {
 public:
  explicit HolePuncher(const std::string& path) : port_(path), memory_(raw::make_memfd(kSize)) {
    limit_sends(port_.client());
    if (port_.map_dma(kIova, 0x1000, 0, memory_.get()) != 0) {
      throw std::runtime_error("DMA_MAP");
    }
    group_ = port_.make_group(1);
    port_.join(group_, 0);
    port_.write(GBA_GROUP_BASE(group_.id) + GBA_GROUP_RELEASE_ADDR, kIova);
    thread_ = std::thread([this] { punch(); });
  }
  HolePuncher(const HolePuncher&) = delete;
  HolePuncher& operator=(const HolePuncher&) = delete;
  ~HolePuncher() {
    stop_ = true;
    thread_.join();
  }

  /// Arrives and takes the releases that have come. False: the device has dropped it.
  bool arrive() {
    port_.arrive(group_, 0, ++sequence_);
    std::this_thread::sleep_for(raw::microseconds(100));
    pollfd ready{.fd = port_.client().socket(), .events = POLLIN, .revents = 0};
    while (::poll(&ready, 1, 0) == 1) {
      const auto store = port_.client().receive();
      if (!store || !raw::answer(port_.client(), *store)) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr off_t kSize = off_t{256} << 20;
  static constexpr std::uint64_t kIova = 0x7000'0000;

  void punch() {
    while (!stop_) {
      ::fallocate(memory_.get(), 0, 0, kSize);
      ::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kSize);
    }
  }

  Port port_;
  Fd memory_;
  Port::Group group_{};
  std::uint64_t sequence_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // the last: it uses the others
};

class Memory : public Given, public ::testing::WithParamInterface<unsigned> {};

// While the kernel takes a page away, a store to it waits, and so does any mapping of memory in the same process.
TEST_P(Memory, ThatIsTakenAwayDelaysNoBarrier) {
  std::atomic<unsigned> released = 0;
  expect_harmless(
      [&](const GoOn& go_on, unsigned) {
        HolePuncher client(path());
        while (go_on() && client.arrive()) {
          ++released;
        }
      },
      GetParam());
  EXPECT_GT(released, 0U) << "the client itself is served";
}

INSTANTIATE_TEST_SUITE_P(OfClients, Memory, ::testing::Values(1U, 3U));

/// An eventfd with many watchers: the kernel visits each of them when it is signalled.
class WatchedEventfd {
 public:
  static constexpr std::size_t kWatchers = 10'000;

  WatchedEventfd() {
    for (auto& watcher : watchers_) {
      watcher = Fd(::epoll_create1(EPOLL_CLOEXEC));
      epoll_event event{.events = EPOLLIN, .data = {}};
      if (::epoll_ctl(watcher.get(), EPOLL_CTL_ADD, eventfd_.get(), &event) != 0) {
        throw std::runtime_error("EPOLL_CTL_ADD");
      }
    }
  }
  [[nodiscard]] int get() const { return eventfd_.get(); }

 private:
  Fd eventfd_ = raw::make_eventfd();
  std::vector<Fd> watchers_ = std::vector<Fd>(kWatchers);
};

class Watched : public Given {
 protected:
  Watched() : Given({"--group-limit", "32"}) {}
  void SetUp() override {
    if (!limit_.enough()) {
      GTEST_SKIP() << "needs " << kFiles << " open files (ulimit -Hn)";
    }
  }

 private:
  static constexpr rlim_t kFiles = WatchedEventfd::kWatchers + 1000;
  FileLimit limit_{kFiles};
};

TEST_F(Watched, EventfdsSignalledForFaultsDelayNoBarrier) {
  const WatchedEventfd eventfd;
  expect_harmless([&](const GoOn& go_on, unsigned) {
    Port port(path());
    ASSERT_EQ(port.arm(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR, std::array{eventfd.get()}), 0);
    while (go_on()) {
      port.write(GBA_REG_CAPS + 4, 0);
      port.write(GBA_REG_FAULT, 0xffff);
    }
  });
}

TEST_F(Watched, EventfdsSignalledForFaultsInBatchesDelayNoBarrier) {
  static const auto payload =
      raw::writes(1365, raw::write_of(GBA_REG_CAPS + 4, 0), raw::write_of(GBA_REG_FAULT, 0xffff));
  const WatchedEventfd eventfd;
  expect_harmless([&](const GoOn& go_on, unsigned) {
    Port port(path(), raw::kVersionWithWriteMultiple);
    limit_sends(port.client());
    ASSERT_EQ(port.arm(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR, std::array{eventfd.get()}), 0);
    while (go_on() && send(port.client(), VFIO_USER_REGION_WRITE_MULTI, payload)) {
    }
  });
}

// One scan of the doorbells signals all of them.
TEST_F(Watched, EventfdsSignalledForReleasesDelayNoBarrier) {
  constexpr unsigned kGroups = GBA_MAX_GROUPS - 2;
  const WatchedEventfd eventfd;
  expect_harmless([&](const GoOn& go_on, unsigned) {
    Port port(path());
    std::vector<Port::Group> groups;
    while (groups.size() < kGroups) {
      groups.push_back(port.make_group(1));
      ASSERT_EQ(port.arm(GBA_IRQ_MSIX, groups.back().id, std::array{eventfd.get()}), 0);
      port.join(groups.back(), 0);
    }
    for (std::uint64_t sequence = 1; go_on(); ++sequence) {
      for (const auto& group : groups) {
        port.arrive(group, 0, sequence, /*notify=*/true);
      }
      for (const auto& group : groups) {
        ASSERT_EQ(port.wait_flag(group, sequence - 1), sequence);
      }
    }
  });
}

TEST_F(Given, DescriptorsOfAnUnfinishedMessageAreNotKept) {
  // There are two clients at a time. Descriptors of earlier ones may still be closing, which takes longer on a busy
  // machine. If the device kept all, there would be about 20,000.
  constexpr std::size_t kMost = 3000;
  std::atomic<std::size_t> most = 0;
  expect_harmless(
      [&](const GoOn& go_on, unsigned) {
        Client client(path());
        client.version();
        limit_sends(client);
        const auto eventfd = raw::make_eventfd();
        const std::vector<int> fds(16, eventfd.get());
        const auto frame = client.frame(VFIO_USER_DEVICE_SET_IRQS, std::vector<std::byte>(0x10000));
        client.send_bytes(std::span(frame).first(sizeof(vfio_user_header)));
        for (int sent = 0; go_on() && client.send_bytes(std::span(frame).last(1), fds); ++sent) {
          if (sent % 100 == 0) {
            most = std::max(most.load(), open_files());
          }
        }
      },
      2);
  EXPECT_LT(most, kMost);
}

}  // namespace
