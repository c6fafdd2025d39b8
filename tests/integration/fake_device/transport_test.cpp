// SPDX-License-Identifier: Apache-2.0
// vfio-user below its commands: the transport of messages, their headers, and the negotiation of the version.
#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "tests/integration/fake_device/device_fixture.hpp"
#include "tests/support/json.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::DeviceTest;
using raw::Port;

constexpr auto kErrorReply = VFIO_USER_TYPE_REPLY | VFIO_USER_ERROR;

std::vector<std::byte> read_request(std::uint32_t region, std::uint64_t offset, std::uint32_t count) {
  return bytes_of(vfio_user_region_access{.offset = offset, .region = region, .count = count});
}

std::vector<std::byte> region_request(std::uint32_t index) {
  vfio_user_region_info info{};
  info.argsz = sizeof info;
  info.index = index;
  return bytes_of(info);
}

const vfio_user_device_info kDeviceInfo{.argsz = sizeof kDeviceInfo, .flags = 0, .num_regions = 0, .num_irqs = 0};

/// For each command, a message that a device without a debug region refuses.
struct Refused {
  std::uint16_t command;
  std::vector<std::byte> payload;
  int error;
};

std::vector<Refused> refused_messages() {
  const vfio_user_dma_map map{.argsz = sizeof map, .flags = 3, .offset = 0, .address = 0x1000, .size = 0};
  const vfio_user_dma_unmap unmap{.argsz = sizeof unmap, .flags = 0, .address = 0x1000, .size = 0x1000};
  const vfio_user_region_io_fds fds{.argsz = 16, .flags = 0, .index = 99, .count = 0};
  const vfio_user_irq_info irq{.argsz = sizeof irq, .flags = 0, .index = 5, .count = 0};
  const vfio_user_irq_set set{.argsz = sizeof set, .flags = 0, .index = 2, .start = 0, .count = 1};
  return {{VFIO_USER_VERSION, bytes_of(vfio_user_version{.major = 0, .minor = 0}), EINVAL},
          {VFIO_USER_DMA_MAP, bytes_of(map), EINVAL},
          {VFIO_USER_DMA_UNMAP, bytes_of(unmap), ENOENT},
          {VFIO_USER_DEVICE_GET_INFO, {}, EINVAL},
          {VFIO_USER_DEVICE_GET_REGION_INFO, region_request(99), EINVAL},
          {VFIO_USER_DEVICE_GET_REGION_IO_FDS, bytes_of(fds), EINVAL},
          {VFIO_USER_DEVICE_GET_IRQ_INFO, bytes_of(irq), EINVAL},
          {VFIO_USER_DEVICE_SET_IRQS, bytes_of(set), EINVAL},
          {VFIO_USER_REGION_READ, read_request(99, 0, 4), EINVAL},
          {VFIO_USER_REGION_WRITE, read_request(0, 0, 4), EINVAL},
          {VFIO_USER_DMA_READ, std::vector<std::byte>(16), EINVAL},
          {VFIO_USER_DMA_WRITE, std::vector<std::byte>(24), EINVAL},
          {VFIO_USER_DEVICE_RESET, std::vector<std::byte>(4), EINVAL},
          {14, {}, EINVAL},
          {VFIO_USER_REGION_WRITE_MULTI, std::vector<std::byte>(8), EINVAL},
          {VFIO_USER_DEVICE_FEATURE, std::vector<std::byte>(8), ENOTSUP},
          {VFIO_USER_MIG_DATA_READ, std::vector<std::byte>(8), ENOTSUP},
          {VFIO_USER_MIG_DATA_WRITE, std::vector<std::byte>(8), ENOTSUP},
          {19, {}, EINVAL}};
}

class Transport : public DeviceTest {
 protected:
  static bool await(const Client& client) {
    pollfd entry{.fd = client.socket(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 20000) == 1;
  }
};

// One known client treats a header that comes in pieces as the end of the connection.
TEST_F(Transport, RepliesComeInOnePieceWithTheirDescriptorsAtTheHeader) {
  Client client(path());
  ASSERT_EQ(client.version().error(), 0);
  for (int round = 0; round < 50; ++round) {
    client.send_bytes(client.frame(VFIO_USER_DEVICE_GET_REGION_INFO, region_request(GBA_REGION_FLAGS)));
    ASSERT_TRUE(await(client));
    vfio_user_header header{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
    iovec part{.iov_base = &header, .iov_len = sizeof header};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ASSERT_EQ(::recvmsg(client.socket(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), ssize_t{sizeof header});
    const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    ASSERT_NE(rights, nullptr) << "no descriptor with the header";
    ASSERT_EQ(rights->cmsg_len, CMSG_LEN(sizeof(int)));
    int number = -1;
    std::memcpy(&number, CMSG_DATA(rights), sizeof number);
    const raw::Fd fd(number);
    std::array<std::byte, 256> rest{};
    EXPECT_EQ(::recv(client.socket(), rest.data(), rest.size(), MSG_DONTWAIT),
              static_cast<ssize_t>(header.msg_size - sizeof header));
  }
}

// The replies exceed the socket's buffer, so the server sends them in pieces; a client that reads small pieces gets
// them all.
TEST_F(Transport, LongRepliesArriveWholeToAClientThatReadsSmallPieces) {
  constexpr unsigned kReplies = 40;
  constexpr std::uint32_t kCount = 0x10000;
  Port port(path());
  for (std::size_t offset = 0; offset < GBA_BAR4_SIZE; offset += 8) {
    port.bar_flags().word(offset) = offset * 0x9e3779b97f4a7c15;
  }
  auto& client = port.client();
  for (unsigned index = 0; index < kReplies; ++index) {
    client.send_bytes(client.frame(VFIO_USER_REGION_READ, read_request(GBA_REGION_FLAGS, 0, kCount)));
  }
  for (unsigned index = 0; index < kReplies; ++index) {
    vfio_user_header header{};
    auto* const bytes = reinterpret_cast<char*>(&header);
    for (std::size_t at = 0; at < sizeof header; ++at) {
      ASSERT_TRUE(await(client));
      ASSERT_EQ(::recv(client.socket(), bytes + at, 1, 0), 1);
    }
    ASSERT_EQ(header.msg_size, sizeof header + sizeof(vfio_user_region_access) + kCount);
    std::vector<std::byte> payload(header.msg_size - sizeof header);
    for (std::size_t at = 0; at < payload.size();) {
      ASSERT_TRUE(await(client));
      const auto most = std::min<std::size_t>(payload.size() - at, 1 + at % 977);
      const auto some = ::recv(client.socket(), payload.data() + at, most, 0);
      ASSERT_GT(some, 0);
      at += static_cast<std::size_t>(some);
    }
    for (std::size_t offset = 0; offset < kCount; offset += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, payload.data() + sizeof(vfio_user_region_access) + offset, sizeof word);
      ASSERT_EQ(word, offset * 0x9e3779b97f4a7c15);
    }
  }
}

TEST_F(Transport, TheLongestNegotiatedMessageIsAccepted) {
  Port port(path());
  const auto data = std::vector<std::byte>(0x10000, std::byte{0x5a});
  const auto write = raw::join(read_request(GBA_REGION_FLAGS, 0, 0x10000), data);
  EXPECT_EQ(port.client().call(VFIO_USER_REGION_WRITE, write).error(), 0);
  EXPECT_EQ(port.bar_flags().word(GBA_BAR4_SIZE - 8).load(), 0x5a5a5a5a5a5a5a5a);
}

TEST_F(Transport, PipelinedCommandsOfEveryKindAreAnsweredInOrder) {
  Port port(path());
  auto& client = port.client();
  std::vector<std::byte> all;
  const auto messages = refused_messages();
  for (const auto& message : messages) {
    const auto refused = client.frame(message.command, message.payload);
    const auto good = client.frame(VFIO_USER_DEVICE_GET_INFO, bytes_of(kDeviceInfo));
    all.insert(all.end(), refused.begin(), refused.end());
    all.insert(all.end(), good.begin(), good.end());
  }
  ASSERT_TRUE(client.send_bytes(all));
  for (const auto& message : messages) {
    const auto refused = client.receive();
    const auto good = client.receive();
    ASSERT_TRUE(refused && good);
    EXPECT_EQ(refused->header.command, message.command);
    EXPECT_EQ(refused->error(), message.error);
    EXPECT_EQ(good->header.command, VFIO_USER_DEVICE_GET_INFO);
    EXPECT_EQ(good->header.msg_id, refused->header.msg_id + 1);
    EXPECT_EQ(good->error(), 0);
  }
}

TEST_F(Transport, IdentifiersAreEchoedAndNeedNotDiffer) {
  Port port(path());
  auto& client = port.client();
  for (const std::uint16_t id : std::array<std::uint16_t, 6>{0, 0, 1, 0x8000, 0xffff, 0xffff}) {
    auto frame = client.frame(VFIO_USER_DEVICE_GET_INFO, bytes_of(kDeviceInfo));
    std::memcpy(frame.data(), &id, sizeof id);
    ASSERT_TRUE(client.send_bytes(frame));
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.msg_id, id);
    EXPECT_EQ(reply->header.flags, VFIO_USER_TYPE_REPLY);
  }
}

TEST_F(Transport, ErrorRepliesAreHeadersForEveryCommand) {
  Port port(path());
  for (const auto& message : refused_messages()) {
    SCOPED_TRACE(message.command);
    const auto reply = port.client().call(message.command, message.payload);
    EXPECT_EQ(reply.header.command, message.command);
    EXPECT_EQ(reply.header.flags, kErrorReply);
    EXPECT_EQ(reply.header.error, static_cast<std::uint32_t>(message.error));
    EXPECT_EQ(reply.header.msg_size, sizeof(vfio_user_header));
    EXPECT_TRUE(reply.payload.empty());
    EXPECT_TRUE(reply.fds.empty());
  }
}

TEST_F(Transport, NoReplyIsSentToAnyCommandThatWantsNone) {
  Port port(path());
  auto& client = port.client();
  const auto quiet = VFIO_USER_TYPE_COMMAND | VFIO_USER_NO_REPLY;
  for (const auto& message : refused_messages()) {
    client.send_bytes(client.frame(message.command, message.payload, quiet));
  }
  const vfio_user_dma_map map{.argsz = sizeof map, .flags = 3, .offset = 0, .address = 0x900000, .size = 0x1000};
  client.send_bytes(client.frame(VFIO_USER_DMA_MAP, bytes_of(map), quiet));
  client.send_bytes(client.frame(VFIO_USER_DEVICE_GET_REGION_INFO, region_request(GBA_REGION_FLAGS), quiet));
  client.send_bytes(client.frame(VFIO_USER_DEVICE_RESET, {}, quiet));
  EXPECT_EQ(port.unmap_dma(0x900000, 0x1000), 0) << "the command was executed, and this is the first reply";
}

TEST_F(Transport, UnknownFlagsAreIgnoredAndUnknownTypesRefused) {
  Port port(path());
  auto& client = port.client();
  for (const std::uint32_t flags : {0x20U, 0x40U, 0x80000000U, 0xffffff00U & ~std::uint32_t{VFIO_USER_NO_REPLY}}) {
    ASSERT_TRUE(client.send_bytes(client.frame(VFIO_USER_DEVICE_GET_INFO, bytes_of(kDeviceInfo), flags)));
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.flags, VFIO_USER_TYPE_REPLY) << "the reply to a request with flags " << flags;
  }
  for (std::uint32_t type = 2; type <= VFIO_USER_TYPE_MASK; ++type) {
    client.send_bytes(client.frame(VFIO_USER_DEVICE_GET_INFO, bytes_of(kDeviceInfo), type));
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error(), EINVAL) << "neither command nor reply: type " << type;
  }
}

TEST_F(Transport, VersionKeepsToTheLimitsOfAKnownClient) {
  Client client(path());
  const auto reply =
      client.version(R"({"capabilities":{"max_msg_fds":16,"twin_socket":{"supported":true,"fd_index":0},)"
                     R"("migration":{"pgsize":4096},"write_multiple":true,"max_dma_maps":65535}})");
  ASSERT_EQ(reply.error(), 0);
  EXPECT_TRUE(reply.fds.empty()) << "no twin socket";
  const char* const text = reinterpret_cast<const char*>(reply.payload.data()) + sizeof(vfio_user_version);
  EXPECT_EQ(std::strlen(text) + 1, reply.payload.size() - sizeof(vfio_user_version)) << "one string";
  const auto json = test_support::Json::parse(text)["capabilities"];
  EXPECT_LE(json["max_msg_fds"], 16);
  EXPECT_GE(json["max_msg_fds"], 1);
  EXPECT_LE(json["max_data_xfer_size"], 64 << 20);
  EXPECT_LE(json["max_dma_maps"], 65535);
  EXPECT_EQ(json["pgsizes"], 4096);
  EXPECT_EQ(json["write_multiple"], true);
  EXPECT_FALSE(json.contains("twin_socket"));
  EXPECT_FALSE(json.contains("migration"));
}

TEST_F(Transport, VersionAnswersAnyMinorWithItsOwn) {
  for (const std::uint16_t minor : std::array<std::uint16_t, 3>{0, 2, 0xffff}) {
    Client client(path());
    const vfio_user_version version{.major = 0, .minor = minor};
    const auto reply = client.call(VFIO_USER_VERSION, bytes_of(version));
    EXPECT_EQ(reply.error(), 0);
    EXPECT_EQ(reply.as<vfio_user_version>().minor, 0);
    EXPECT_LE(reply.header.msg_size, VFIO_USER_MAX_VERSION_REPLY);
  }
}

TEST_F(Transport, TheClientsTransferSizeIsAnUpperLimit) {
  Client client(path());
  ASSERT_EQ(client.version(R"({"capabilities":{"max_data_xfer_size":16}})").error(), 0);
  EXPECT_EQ(client.call(VFIO_USER_REGION_READ, read_request(GBA_REGION_CONFIG, 0, 16)).error(), 0);
  EXPECT_EQ(client.call(VFIO_USER_REGION_READ, read_request(GBA_REGION_CONFIG, 0, 17)).error(), EINVAL);
  const auto write = raw::join(read_request(GBA_REGION_CONFIG, 0, 17), std::vector<std::byte>(17));
  EXPECT_EQ(client.call(VFIO_USER_REGION_WRITE, write).error(), EINVAL);
}

TEST_F(Transport, AClientThatTakesOneDescriptorGetsOne) {
  for (const int most : {0, 1}) {
    Client client(path());
    ASSERT_EQ(client.version(R"({"capabilities":{"max_msg_fds":)" + std::to_string(most) + "}}").error(), 0);
    const auto expected = static_cast<std::size_t>(most);
    EXPECT_EQ(client.call(VFIO_USER_DEVICE_GET_REGION_INFO, region_request(GBA_REGION_FLAGS)).fds.size(), expected);
    const vfio_user_region_io_fds request{.argsz = 56, .flags = 0, .index = GBA_REGION_DOORBELLS, .count = 0};
    const auto reply = client.call(VFIO_USER_DEVICE_GET_REGION_IO_FDS, bytes_of(request));
    EXPECT_EQ(reply.as<vfio_user_region_io_fds>().count, expected);
    EXPECT_EQ(reply.fds.size(), expected);
  }
}

TEST_F(Transport, AsManyDescriptorsAsNegotiatedAreAcceptedAndNoMore) {
  Port port(path());
  std::vector<raw::Fd> owners;
  std::vector<int> fds;
  for (int count = 0; count < 17; ++count) {
    owners.push_back(raw::make_eventfd());
    fds.push_back(owners.back().get());
  }
  EXPECT_EQ(port.arm(GBA_IRQ_MSIX, 16, std::span(fds).first(16)), 0);
  EXPECT_EQ(port.arm(GBA_IRQ_MSIX, 0, fds), EINVAL);
  EXPECT_EQ(port.arm(GBA_IRQ_MSIX, 0, std::span(fds).first(16)), 0) << "the connection stays";
}

TEST_F(Transport, AReconnectedClientStartsAfresh) {
  const auto memory = raw::make_memfd(0x1000);
  Port::Group group{};
  {
    Port first(path());
    ASSERT_EQ(first.read(GBA_REG_PORT_ID, 4), 0U);
    ASSERT_EQ(first.map_dma(0x900000, 0x1000, 0, memory.get()), 0);
    group = first.make_group(1);
    first.join(group, 0);
    first.doorbells().word(GBA_DOORBELL_SLOT(31)) = 1;
  }
  Port again(path());
  EXPECT_EQ(again.read(GBA_REG_PORT_ID, 4), 0U) << "its port is free again";
  EXPECT_EQ(again.read(GBA_REG_FAULT), 0U);
  EXPECT_EQ(again.unmap_dma(0x900000, 0x1000), ENOENT);
  EXPECT_EQ(again.map_dma(0x900000, 0x1000, 0, memory.get()), 0);
  EXPECT_EQ(again.command(GBA_CMD_JOIN, group.id, 0, group.key), unsigned{GBA_CMD_ERROR_GROUP});
}

}  // namespace
