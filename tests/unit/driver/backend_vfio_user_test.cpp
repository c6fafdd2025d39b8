// SPDX-License-Identifier: Apache-2.0
#include "driver/backend_vfio_user.hpp"
#include "base/memfd.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/un.h>

#include <array>
#include <cerrno>

#include "tests/support/process.hpp"
#include "tests/unit/driver/scripted_server.hpp"

namespace gba::test {
namespace {

using testing::HasSubstr;

class VfioUserBackendTest : public testing::Test {
 protected:
  void serve(std::function<void(const ServerEnd&)> script) {
    server_.emplace(std::move(script));
    backend_ = std::make_unique<VfioUserBackend>(server_->channel());
  }
  void TearDown() override { backend_.reset(); }

  std::optional<ScriptedServer> server_;
  std::unique_ptr<VfioUserBackend> backend_;
};

TEST_F(VfioUserBackendTest, ReadsAndWritesRegisters) {
  serve([](const ServerEnd& end) {
    const Received read = end.receive();
    const auto access = read.get<vfio_user_region_access>();
    EXPECT_EQ(read.header.command, VFIO_USER_REGION_READ);
    EXPECT_EQ(access.region, 0U);
    EXPECT_EQ(access.offset, 0x28U);
    EXPECT_EQ(access.count, 4U);
    std::vector<std::byte> reply = read.payload;
    reply.resize(20, std::byte{0x11});
    end.reply(read, reply);

    const Received write = end.receive();
    EXPECT_EQ(write.header.command, VFIO_USER_REGION_WRITE);
    EXPECT_EQ(write.get<vfio_user_region_access>().count, 8U);
    EXPECT_EQ(write.get<std::uint64_t>(16), 77U);
    end.reply(write, std::span(write.payload).first(16));
  });
  std::uint32_t value = 0;
  ASSERT_TRUE(backend_->read(0, 0x28, std::as_writable_bytes(std::span(&value, 1))));
  EXPECT_EQ(value, 0x11111111U);
  const std::uint64_t written = 77;
  EXPECT_TRUE(backend_->write(0, 0x30, std::as_bytes(std::span(&written, 1))));
}

TEST_F(VfioUserBackendTest, TreatsAReadReplyWithoutDataAsALostDevice) {
  serve([](const ServerEnd& end) {
    const Received read = end.receive();
    end.reply(read, read.payload);
    (void)end.receive();
  });
  std::uint32_t value = 0;
  const auto result = backend_->read(0, 0, std::as_writable_bytes(std::span(&value, 1)));
  EXPECT_EQ(result.error().code, std::errc::bad_message);
  EXPECT_EQ(backend_->loss(), Loss::kGarbled);
}

TEST_F(VfioUserBackendTest, MapsARegionFromTheFileInTheReply) {
  const auto file = base::create_memfd("region", 16384).value();
  serve([&](const ServerEnd& end) {
    for (int i = 0; i < 2; ++i) {
      const Received ask = end.receive();
      auto info = ask.get<vfio_user_region_info>();
      EXPECT_EQ(info.index, 2U);
      info.flags = VFIO_USER_REGION_MMAP | VFIO_USER_REGION_READABLE | VFIO_USER_REGION_WRITABLE;
      info.size = 8192;
      info.offset = 4096;
      end.reply(ask, wire_bytes(info), std::array{file.get()});
    }
  });
  const auto info = backend_->region_info(2);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->size, 8192U);
  EXPECT_TRUE(info->mappable);
  const auto region = backend_->map(2);
  ASSERT_TRUE(region);
  region->bytes()[0] = std::byte{9};
  EXPECT_EQ(map_shared(file.get(), 0, 16384, "all")->bytes()[4096], std::byte{9});
}

TEST_F(VfioUserBackendTest, RegionWithoutAFileCannotBeMapped) {
  serve([](const ServerEnd& end) {
    const Received ask = end.receive();
    auto info = ask.get<vfio_user_region_info>();
    info.flags = VFIO_USER_REGION_MMAP;
    info.size = 4096;
    end.reply(ask, wire_bytes(info));
  });
  EXPECT_THAT(backend_->map(2).error().text, HasSubstr("the server gives no file for it"));
}

void offer_eventfds(const ServerEnd& end, const Received& ask, std::span<const vfio_user_ioeventfd> entries,
                    std::uint32_t count, std::span<const int> fds) {
  auto head = ask.get<vfio_user_region_io_fds>();
  head.count = count;
  const auto head_bytes = wire_bytes(head);
  const auto entry_bytes = std::as_bytes(entries);
  std::vector<std::byte> payload(head_bytes.begin(), head_bytes.end());
  payload.insert(payload.end(), entry_bytes.begin(), entry_bytes.end());
  end.reply(ask, payload, fds);
}

TEST_F(VfioUserBackendTest, FindsTheEventfdOfARegister) {
  const base::UniqueFd eventfd(::eventfd(0, EFD_NONBLOCK));
  serve([&](const ServerEnd& end) {
    const Received ask = end.receive();
    EXPECT_EQ(ask.get<vfio_user_region_io_fds>().index, 2U);
    const std::array<vfio_user_ioeventfd, 2> entries{
        {{.offset = 0x10, .size = 4, .fd_index = 1, .type = 0, .flags = 0, .padding = 0, .datamatch = 0},
         {.offset = 0xffc0, .size = 4, .fd_index = 0, .type = 0, .flags = 0, .padding = 0, .datamatch = 0}}};
    offer_eventfds(end, ask, entries, 2, std::array{eventfd.get()});
  });
  const auto found = backend_->doorbell_eventfd(2, 0xffc0);
  ASSERT_TRUE(found && *found);
  ::eventfd_write(found->get(), 5);
  eventfd_t value = 0;
  ASSERT_EQ(::eventfd_read(eventfd.get(), &value), 0);
  EXPECT_EQ(value, 5U);
}

TEST_F(VfioUserBackendTest, IgnoresAnEventfdThatIsNotOfferedOrInvalid) {
  const base::UniqueFd eventfd(::eventfd(0, EFD_NONBLOCK));
  serve([&](const ServerEnd& end) {
    end.reply_error(end.receive(), EINVAL);
    const std::array<vfio_user_ioeventfd, 1> wrong_index{
        {{.offset = 0xffc0, .size = 4, .fd_index = 7, .type = 0, .flags = 0, .padding = 0, .datamatch = 0}}};
    offer_eventfds(end, end.receive(), wrong_index, 1, std::array{eventfd.get()});
    offer_eventfds(end, end.receive(), {}, 1000, {});
  });
  for (int i = 0; i < 3; ++i) {
    const auto found = backend_->doorbell_eventfd(2, 0xffc0);
    ASSERT_TRUE(found) << i;
    EXPECT_FALSE(*found) << i;
  }
}

TEST_F(VfioUserBackendTest, ArmsAndDisarmsOneVector) {
  serve([](const ServerEnd& end) {
    const Received ask = end.receive();
    auto info = ask.get<vfio_user_irq_info>();
    EXPECT_EQ(info.index, 2U);
    info.flags = VFIO_USER_IRQ_INFO_EVENTFD;
    info.count = 33;
    end.reply(ask, wire_bytes(info));
    for (const std::size_t fds : {1U, 0U}) {
      const Received set = end.receive();
      const auto irqs = set.get<vfio_user_irq_set>();
      EXPECT_EQ(irqs.flags, VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER);
      EXPECT_EQ(irqs.index, 2U);
      EXPECT_EQ(irqs.start, 31U);
      EXPECT_EQ(irqs.count, 1U);
      EXPECT_EQ(set.fds.size(), fds);
      end.reply(set, {});
    }
  });
  EXPECT_EQ(backend_->irq_count(2).value(), 33U);
  const base::UniqueFd eventfd(::eventfd(0, EFD_NONBLOCK));
  EXPECT_TRUE(backend_->arm_irq(2, 31, eventfd.get()));
  EXPECT_TRUE(backend_->disarm_irq(2, 31));
}

TEST_F(VfioUserBackendTest, MapsMemoryForTheDeviceWithItsFile) {
  const auto file = base::create_memfd("flags", 4096).value();
  auto memory = map_shared(file.get(), 0, 4096, "flags").value();
  serve([](const ServerEnd& end) {
    const Received map = end.receive();
    const auto asked = map.get<vfio_user_dma_map>();
    EXPECT_EQ(asked.argsz, 32U);
    EXPECT_EQ(asked.flags, VFIO_USER_DMA_READABLE | VFIO_USER_DMA_WRITABLE);
    EXPECT_EQ(asked.address, 0x100000000U);
    EXPECT_EQ(asked.size, 4096U);
    ASSERT_EQ(map.fds.size(), 1U);
    map_shared(map.fds[0].get(), asked.offset, 4096, "it")->bytes()[3] = std::byte{7};
    end.reply(map, {});
    const Received unmap = end.receive();
    EXPECT_EQ(unmap.get<vfio_user_dma_unmap>().address, 0x100000000U);
    EXPECT_EQ(unmap.get<vfio_user_dma_unmap>().size, 4096U);
    end.reply(unmap, unmap.payload);
    const Received reset = end.receive();
    EXPECT_EQ(reset.header.command, VFIO_USER_DEVICE_RESET);
    end.reply(reset, {});
  });
  ASSERT_TRUE(backend_->dma_map({.fd = file.get(), .memory = memory.bytes()}, 0x100000000));
  EXPECT_EQ(memory.bytes()[3], std::byte{7});
  EXPECT_TRUE(backend_->dma_unmap(0x100000000, 4096));
  EXPECT_TRUE(backend_->reset());
}

TEST_F(VfioUserBackendTest, NoticesTheEndOfTheConnectionWithoutARequest) {
  serve([](const ServerEnd&) {});
  pollfd event = backend_->loss_event();
  ASSERT_EQ(::poll(&event, 1, -1), 1);
  EXPECT_TRUE(backend_->check_lost());
  EXPECT_EQ(backend_->loss(), Loss::kClosed);
}

TEST_F(VfioUserBackendTest, DoesNotTakeAPartialReplyForALoss) {
  serve([](const ServerEnd& end) {
    end.send_raw(std::array{std::byte{1}});
    (void)end.receive();  // returns when the client disconnects
  });
  pollfd readable{.fd = backend_->loss_event().fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&readable, 1, -1), 1);
  EXPECT_FALSE(backend_->check_lost());
}

TEST_F(VfioUserBackendTest, DeclaringTheLossEndsTheConnection) {
  serve([](const ServerEnd& end) { EXPECT_EQ(end.receive().header.msg_size, 0U); });
  backend_->declare_lost(Loss::kSilent);
  pollfd event = backend_->loss_event();
  EXPECT_EQ(::poll(&event, 1, 0), 1);
}

std::errc connect_error(const std::string& name) {
  const auto socket = connect_unix(name, "vfio-user:" + name, Deadline::after(std::chrono::milliseconds{50}));
  return socket ? std::errc{} : socket.error().code;
}

base::UniqueFd listen_on(const std::string& name, int type, int backlog) {
  base::UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<void*>(address.sun_path), name.data(), name.size());
  socklen_t size = sizeof(address);
  if (name.starts_with('@')) {
    address.sun_path[0] = '\0';
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  }
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    std::abort();
  }
  if (type == SOCK_STREAM && ::listen(socket.get(), backlog) != 0) {
    std::abort();
  }
  return socket;
}

TEST(SendBytes, SendsTheFileDescriptorsOfALongMessageOnce) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, static_cast<int*>(ends)), 0);
  const base::UniqueFd sender(ends[0]);
  const base::UniqueFd receiver(ends[1]);
  const base::UniqueFd eventfd(::eventfd(0, 0));
  const std::vector<std::byte> sent(4 << 20, std::byte{1});  // more than a socket holds
  const Deadline deadline = Deadline::after(std::chrono::seconds{30});
  std::thread thread([&] { EXPECT_TRUE(send_bytes(sender.get(), sent, std::array{eventfd.get()}, deadline)); });
  std::vector<std::byte> received(sent.size());
  std::vector<base::UniqueFd> fds;
  EXPECT_TRUE(receive_bytes(receiver.get(), received, fds, deadline));
  thread.join();
  EXPECT_EQ(fds.size(), 1U);
  EXPECT_EQ(received, sent);
}

TEST(ConnectUnix, ReachesAPathAndAnAbstractName) {
  const test_support::TempDir dir;
  const base::UniqueFd path = listen_on(dir.file("s"), SOCK_STREAM, 4);
  EXPECT_EQ(connect_error(dir.file("s")), std::errc{});
  const std::string abstract = "@" + dir.path();
  const base::UniqueFd other = listen_on(abstract, SOCK_STREAM, 4);
  EXPECT_EQ(connect_error(abstract), std::errc{});
}

TEST(ConnectUnix, SaysWhyItCannotConnect) {
  const test_support::TempDir dir;
  EXPECT_EQ(connect_error(dir.file("none")), std::errc::no_such_device);
  { const base::UniqueFd dead = listen_on(dir.file("dead"), SOCK_STREAM, 1); }
  EXPECT_EQ(connect_error(dir.file("dead")), std::errc::connection_refused);
  { const base::UniqueFd file(::open(dir.file("file").c_str(), O_CREAT | O_WRONLY, 0600)); }
  EXPECT_EQ(connect_error(dir.file("file")), std::errc::invalid_argument);
  const base::UniqueFd datagram = listen_on(dir.file("datagram"), SOCK_DGRAM, 0);
  EXPECT_EQ(connect_error(dir.file("datagram")), std::errc::invalid_argument);
  EXPECT_EQ(connect_error("/" + std::string(200, 'x')), std::errc::invalid_argument);
  EXPECT_EQ(connect_error("@" + dir.path() + "none"), std::errc::connection_refused);
}

TEST(ConnectUnix, GivesUpOnAServerThatAcceptsNoConnection) {
  const test_support::TempDir dir;
  const base::UniqueFd server = listen_on(dir.file("s"), SOCK_STREAM, 0);
  std::vector<base::UniqueFd> queued;
  std::errc error{};
  for (int i = 0; i < 8 && error == std::errc{}; ++i) {
    auto socket = connect_unix(dir.file("s"), "it", Deadline::after(std::chrono::milliseconds{20}));
    error = socket ? std::errc{} : socket.error().code;
    if (socket) {
      queued.push_back(*std::move(socket));
    }
  }
  EXPECT_EQ(error, std::errc::device_or_resource_busy);
}

}  // namespace
}  // namespace gba::test
