// SPDX-License-Identifier: Apache-2.0
// vfio-user, command by command, over a raw socket.
#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "tests/integration/fake_device/device_fixture.hpp"
#include "tests/support/json.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::DeviceTest;
using raw::Port;

class Protocol : public DeviceTest {
 protected:
  Protocol() = default;

  raw::Reply region_info(Client& client, unsigned index, unsigned argsz = sizeof(vfio_user_region_info)) {
    vfio_user_region_info info{};
    info.argsz = argsz;
    info.index = index;
    return client.call(VFIO_USER_DEVICE_GET_REGION_INFO, bytes_of(info));
  }
  static int access_error(Client& client, std::uint16_t command, std::uint64_t offset, std::uint32_t region,
                          std::uint32_t count, std::size_t data = 0) {
    const vfio_user_region_access access{.offset = offset, .region = region, .count = count};
    return client.call(command, raw::join(bytes_of(access), std::vector<std::byte>(data))).error();
  }
};

TEST_F(Protocol, VersionIsAnsweredShortWithMinorZero) {
  Client client(path());
  const auto reply = client.version();
  ASSERT_EQ(reply.error(), 0);
  EXPECT_EQ(reply.header.flags, VFIO_USER_TYPE_REPLY);
  EXPECT_LE(reply.header.msg_size, VFIO_USER_MAX_VERSION_REPLY);
  const auto version = reply.as<vfio_user_version>();
  EXPECT_EQ(version.major, 0);
  EXPECT_EQ(version.minor, 0);
  ASSERT_EQ(reply.payload.back(), std::byte{0});
  const auto json = test_support::Json::parse(reinterpret_cast<const char*>(reply.payload.data()) + sizeof version);
  EXPECT_LE(json["capabilities"]["max_msg_fds"], 16);
  EXPECT_EQ(json["capabilities"]["pgsizes"], 4096);
  EXPECT_FALSE(json["capabilities"].contains("write_multiple")) << "the client did not offer it";
}

TEST_F(Protocol, VersionOfAKnownHypervisorIsAnsweredInItsBuffer) {
  Client client(path());
  const auto reply = client.version(
      R"({"capabilities": {"pgsizes": 4096, "max_msg_fds": 16, "max_dma_maps": 65535, "max_data_xfer_size": 1048576, )"
      R"("migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, "write_multiple": true}})");
  EXPECT_EQ(reply.error(), 0);
  EXPECT_LE(reply.header.msg_size, VFIO_USER_MAX_VERSION_REPLY);
}

TEST_F(Protocol, VersionWithoutCapabilitiesIsEnough) {
  Client client(path());
  const vfio_user_version version{.major = 0, .minor = 7};
  const auto reply = client.call(VFIO_USER_VERSION, bytes_of(version));
  EXPECT_EQ(reply.error(), 0);
  EXPECT_EQ(reply.as<vfio_user_version>().minor, 0);
}

TEST_F(Protocol, BadVersionsAreRefusedAndTheConnectionIsClosed) {
  const auto refused = [&](const raw::Reply& reply, Client& client) {
    EXPECT_EQ(reply.error(), EINVAL);
    EXPECT_EQ(reply.header.msg_size, sizeof(vfio_user_header)) << "an error reply is only a header";
    EXPECT_EQ(client.receive(), std::nullopt);
  };
  for (const char* json : {"", "{", "[1]", "\"x\"", R"({"capabilities":3})", R"({"capabilities":{"max_msg_fds":-1}})",
                           R"({"capabilities":{"max_msg_fds":"many"}})", R"({"capabilities":{"write_multiple":1}})",
                           R"({"capabilities":{"max_data_xfer_size":1.5}})"}) {
    SCOPED_TRACE(json);
    Client client(path());
    refused(client.version(json), client);
  }
  Client wrong_major(path());
  refused(wrong_major.version("{}", 1), wrong_major);
  Client no_payload(path());
  refused(no_payload.call(VFIO_USER_VERSION, {}), no_payload);
  Client no_nul(path());
  const vfio_user_version version{.major = 0, .minor = 0};
  refused(no_nul.call(VFIO_USER_VERSION, raw::join(bytes_of(version), std::vector<std::byte>(2, std::byte{'{'}))),
          no_nul);
  Client with_fd(path());
  const auto fd = raw::make_eventfd();
  const std::array fds{fd.get()};
  refused(with_fd.call(VFIO_USER_VERSION, bytes_of(version), fds), with_fd);
}

TEST_F(Protocol, VersionComesFirstAndOnce) {
  Client early(path());
  const vfio_user_device_info info{.argsz = sizeof info, .flags = 0, .num_regions = 0, .num_irqs = 0};
  EXPECT_EQ(early.call(VFIO_USER_DEVICE_GET_INFO, bytes_of(info)).error(), EINVAL);
  EXPECT_EQ(early.receive(), std::nullopt);
  Client twice(path());
  EXPECT_EQ(twice.version().error(), 0);
  EXPECT_EQ(twice.version().error(), EINVAL);
  EXPECT_EQ(twice.call(VFIO_USER_DEVICE_GET_INFO, bytes_of(info)).error(), 0) << "the connection stays";
}

TEST_F(Protocol, DeviceInfoIsThatOfAPciFunction) {
  Port port(path());
  const vfio_user_device_info request{.argsz = sizeof request, .flags = 0, .num_regions = 0, .num_irqs = 0};
  const auto info = port.client().call(VFIO_USER_DEVICE_GET_INFO, bytes_of(request)).as<vfio_user_device_info>();
  EXPECT_EQ(info.argsz, sizeof info);
  EXPECT_EQ(info.flags, VFIO_USER_DEVICE_RESET_SUPPORTED | VFIO_USER_DEVICE_PCI);
  EXPECT_EQ(info.num_regions, 9U);
  EXPECT_EQ(info.num_irqs, 5U);
  auto small = request;
  small.argsz = 15;
  EXPECT_EQ(port.client().call(VFIO_USER_DEVICE_GET_INFO, bytes_of(small)).error(), EINVAL);
}

TEST_F(Protocol, RegionsHaveTheirSizesAndTheMappableOnesAFile) {
  Port port(path());
  const std::array<std::uint64_t, GBA_NUM_REGIONS> sizes{GBA_BAR0_SIZE,   0, GBA_BAR2_SIZE, 0, GBA_BAR4_SIZE, 0, 0,
                                                         GBA_CONFIG_SIZE, 0};
  for (unsigned index = 0; index < GBA_NUM_REGIONS; ++index) {
    SCOPED_TRACE(index);
    const auto reply = region_info(port.client(), index);
    const auto info = reply.as<vfio_user_region_info>();
    const bool mappable = index == GBA_REGION_DOORBELLS || index == GBA_REGION_FLAGS;
    EXPECT_EQ(info.argsz, sizeof info);
    EXPECT_EQ(info.size, sizes[index]);
    EXPECT_EQ(info.flags, sizes[index] == 0 ? 0U : (mappable ? 7U : 3U));
    ASSERT_EQ(reply.fds.size(), mappable ? 1U : 0U);
    if (mappable) {
      EXPECT_EQ(::ftruncate(reply.fds.front().get(), 0), -1) << "a client could take the device's memory away";
      EXPECT_EQ(::ftruncate(reply.fds.front().get(), 1 << 20), -1);
    }
  }
  EXPECT_EQ(region_info(port.client(), GBA_NUM_REGIONS).error(), EINVAL);
  EXPECT_EQ(region_info(port.client(), 0, 31).error(), EINVAL);
}

TEST_F(Protocol, AClientThatTakesNoDescriptorsGetsNone) {
  Client client(path());
  ASSERT_EQ(client.version(R"({"capabilities":{"max_msg_fds":0}})").error(), 0);
  const auto reply = region_info(client, GBA_REGION_DOORBELLS);
  EXPECT_EQ(reply.as<vfio_user_region_info>().flags, 3U);
  EXPECT_TRUE(reply.fds.empty());
}

TEST_F(Protocol, TheKickOfTheDoorbellsComesAsAnIoeventfd) {
  Port port(path());
  vfio_user_region_io_fds request{.argsz = 16, .flags = 0, .index = GBA_REGION_DOORBELLS, .count = 0};
  auto reply = port.client().call(VFIO_USER_DEVICE_GET_REGION_IO_FDS, bytes_of(request));
  EXPECT_EQ(reply.as<vfio_user_region_io_fds>().argsz, 56U) << "the reply to a small request has the full size";
  EXPECT_TRUE(reply.fds.empty());
  request.argsz = 56;
  reply = port.client().call(VFIO_USER_DEVICE_GET_REGION_IO_FDS, bytes_of(request));
  ASSERT_EQ(reply.payload.size(), 56U);
  ASSERT_EQ(reply.fds.size(), 1U);
  const auto entry = reply.as<vfio_user_ioeventfd>(sizeof request);
  EXPECT_EQ(entry.offset, GBA_DOORBELL_WAKEUP);
  EXPECT_EQ(entry.size, 4U);
  EXPECT_EQ(entry.type, VFIO_USER_IO_FD_TYPE_IOEVENTFD);
  request.index = GBA_REGION_CONTROL;
  reply = port.client().call(VFIO_USER_DEVICE_GET_REGION_IO_FDS, bytes_of(request));
  EXPECT_EQ(reply.as<vfio_user_region_io_fds>().count, 0U);
  request.index = GBA_NUM_REGIONS;
  EXPECT_EQ(port.client().call(VFIO_USER_DEVICE_GET_REGION_IO_FDS, bytes_of(request)).error(), EINVAL);
}

TEST_F(Protocol, RegionAccessesOutOfBoundsAreRefused) {
  Port port(path());
  auto& client = port.client();
  constexpr auto kRead = VFIO_USER_REGION_READ;
  constexpr auto kWrite = VFIO_USER_REGION_WRITE;
  EXPECT_EQ(access_error(client, kRead, GBA_BAR0_SIZE - 4, GBA_REGION_CONTROL, 8), EINVAL);
  EXPECT_EQ(access_error(client, kRead, ~std::uint64_t{0}, GBA_REGION_CONTROL, 8), EINVAL);
  EXPECT_EQ(access_error(client, kRead, ~std::uint64_t{0} - 3, GBA_REGION_CONFIG, 8), EINVAL);
  EXPECT_EQ(access_error(client, kRead, 0, GBA_NUM_REGIONS, 4), EINVAL);
  EXPECT_EQ(access_error(client, kRead, 0, 0xffffffff, 4), EINVAL);
  EXPECT_EQ(access_error(client, kRead, 0, 1, 4), EINVAL) << "there is no such region";
  EXPECT_EQ(access_error(client, kRead, 0, GBA_REGION_CONTROL, 0x10001), EINVAL) << "more than max_data_xfer_size";
  EXPECT_EQ(access_error(client, kRead, 0, GBA_REGION_CONTROL, 0xffffffff), EINVAL);
  EXPECT_EQ(access_error(client, kRead, 0, GBA_REGION_CONTROL, 4, 4), EINVAL) << "a read with data";
  EXPECT_EQ(access_error(client, kWrite, 0, GBA_REGION_CONTROL, 8, 4), EINVAL);
  EXPECT_EQ(access_error(client, kWrite, 0, GBA_REGION_CONTROL, 4, 8), EINVAL);
  EXPECT_EQ(access_error(client, kWrite, GBA_CONFIG_SIZE - 2, GBA_REGION_CONFIG, 4, 4), EINVAL);
  EXPECT_EQ(access_error(client, kRead, 0, GBA_REGION_CONTROL, 0), 0);
  EXPECT_EQ(access_error(client, kRead, GBA_CONFIG_SIZE, GBA_REGION_CONFIG, 0), 0);
  EXPECT_EQ(access_error(client, kRead, 0, GBA_REGION_CONFIG, GBA_CONFIG_SIZE), 0);
  EXPECT_EQ(access_error(client, kRead, 0, GBA_REGION_DOORBELLS, 0x10000), 0);
}

TEST_F(Protocol, ADoorbellMayBeRungByMessage) {
  Port port(path());
  const auto group = port.make_group(1);
  port.join(group, 0);
  const auto word = GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, 1) | GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1);
  EXPECT_EQ(port.write(GBA_DOORBELL_SLOT(group.id), word, 8, GBA_REGION_DOORBELLS), 0);
  EXPECT_EQ(port.flag(group), 1U);
  EXPECT_EQ(port.write(GBA_DOORBELL_WAKEUP, 1, 4, GBA_REGION_DOORBELLS), 0);
  EXPECT_EQ(port.read(GBA_REG_FAULT), 0U);
  EXPECT_EQ(port.write(GBA_DOORBELL_SLOT(group.id) + 8, word, 8, GBA_REGION_DOORBELLS), 0);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_BAD_ARRIVAL));
}

TEST_F(Protocol, ConfigSpaceIsThatOfTheDevice) {
  Port port(path());
  const auto config = [&](std::uint64_t offset, std::uint32_t size) {
    return port.read(offset, size, GBA_REGION_CONFIG);
  };
  EXPECT_EQ(config(0x00, 2), GBA_PCI_VENDOR_ID);
  EXPECT_EQ(config(0x02, 2), GBA_PCI_DEVICE_ID);
  EXPECT_EQ(config(0x08, 4) >> 8, GBA_PCI_CLASS);
  EXPECT_EQ(config(0x34, 1), 0x40U);
  EXPECT_EQ(config(0x40, 1), 0x11U) << "MSI-X";
  EXPECT_EQ(config(0x42, 2) & 0x7ff, GBA_MSIX_VECTORS - 1);
  EXPECT_EQ(config(0x44, 4), GBA_MSIX_TABLE_OFFSET);
  EXPECT_EQ(config(0x48, 4), GBA_MSIX_PBA_OFFSET);
  EXPECT_EQ(port.write(0x00, 0xffff, 2, GBA_REGION_CONFIG), 0);
  EXPECT_EQ(config(0x00, 2), GBA_PCI_VENDOR_ID) << "read-only";
}

TEST_F(Protocol, BarsAreSizedByWritingOnes) {
  Port port(path());
  const std::array<std::uint64_t, 3> sizes{GBA_BAR0_SIZE, GBA_BAR2_SIZE, GBA_BAR4_SIZE};
  for (unsigned pair = 0; pair < 3; ++pair) {
    const std::uint64_t offset = 0x10 + 8 * pair;
    port.write(offset, 0xffffffff, 4, GBA_REGION_CONFIG);
    port.write(offset + 4, 0xffffffff, 4, GBA_REGION_CONFIG);
    const auto value = port.read(offset, 8, GBA_REGION_CONFIG);
    EXPECT_EQ(value & 0xf, 0x4U) << "64-bit memory";
    EXPECT_EQ(~(value & ~std::uint64_t{0xf}) + 1, sizes[pair]);
  }
}

TEST_F(Protocol, MsixTableCanBeReadBack) {
  Port port(path());
  EXPECT_EQ(port.write(GBA_MSIX_TABLE_OFFSET + 16, 0xfee00000, 4), 0);
  EXPECT_EQ(port.read(GBA_MSIX_TABLE_OFFSET + 16, 4), 0xfee00000U);
  EXPECT_EQ(port.read(GBA_MSIX_PBA_OFFSET, 8), 0U);
  EXPECT_EQ(port.read(GBA_REG_FAULT), 0U);
}

TEST_F(Protocol, MaskedInterruptsArePendingInAReadOnlyArray) {
  Port port(path());
  const auto mask = [&](std::uint32_t action) {
    const vfio_user_irq_set irqs{.argsz = sizeof irqs,
                                 .flags = VFIO_USER_IRQ_DATA_NONE | action,
                                 .index = GBA_IRQ_MSIX,
                                 .start = GBA_MSIX_ERROR_VECTOR,
                                 .count = 1};
    return port.client().call(VFIO_USER_DEVICE_SET_IRQS, bytes_of(irqs)).error();
  };
  ASSERT_EQ(mask(VFIO_USER_IRQ_ACTION_MASK), 0);
  port.write(GBA_REG_MAGIC, 0, 8);  // BAD_ACCESS, so the error vector
  EXPECT_EQ(port.read(GBA_MSIX_PBA_OFFSET, 8), std::uint64_t{1} << GBA_MSIX_ERROR_VECTOR);
  port.write(GBA_REG_FAULT, UINT64_MAX);
  EXPECT_EQ(port.write(GBA_MSIX_PBA_OFFSET, 0, 8), 0);
  EXPECT_EQ(port.read(GBA_MSIX_PBA_OFFSET, 8), std::uint64_t{1} << GBA_MSIX_ERROR_VECTOR);
  ASSERT_EQ(mask(VFIO_USER_IRQ_ACTION_UNMASK), 0);
  EXPECT_EQ(port.read(GBA_MSIX_PBA_OFFSET, 8), 0U);
  EXPECT_EQ(port.read(GBA_REG_FAULT), 0U);
  port.read(GBA_MSIX_PBA_OFFSET + 8, 8);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS)) << "past its end";
}

TEST_F(Protocol, FunctionLevelResetThroughConfigSpaceIsALeave) {
  constexpr std::uint64_t kControl = 0x60 + 8;
  Port port(path());
  ASSERT_EQ(port.read(0x41, 1, GBA_REGION_CONFIG), 0x60U);
  ASSERT_EQ(port.read(0x60, 1, GBA_REGION_CONFIG), 0x10U) << "PCI Express";
  ASSERT_NE(port.read(0x64, 4, GBA_REGION_CONFIG) & (1U << 28), 0U) << "can be reset";
  Port other(path());
  const auto group = other.make_group(2);
  other.join(group, 0);
  port.join(group, 1);
  const auto before = port.read(kControl, 2, GBA_REGION_CONFIG);
  EXPECT_EQ(port.write(kControl, before | 1U << 15, 2, GBA_REGION_CONFIG), 0);
  EXPECT_EQ(port.read(kControl, 2, GBA_REGION_CONFIG), before) << "the bit reads 0";
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, other.wait_flag(group, 0)), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(port.read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE) << "decoding is kept";
}

// Uapi rule 20: a flag store never has these attributes, so nothing can allow them.
TEST_F(Protocol, RelaxedOrderingAndNoSnoopCannotBeEnabled) {
  constexpr std::uint64_t kControl = 0x60 + 8;
  constexpr std::uint64_t kRelaxedOrdering = 1U << 4;
  constexpr std::uint64_t kNoSnoop = 1U << 11;
  constexpr std::uint64_t kErrorReports = 0xf;
  Port port(path());
  const auto before = port.read(kControl, 2, GBA_REGION_CONFIG);
  EXPECT_EQ(before & (kRelaxedOrdering | kNoSnoop), 0U);
  EXPECT_EQ(port.write(kControl, before | kRelaxedOrdering | kNoSnoop | kErrorReports, 2, GBA_REGION_CONFIG), 0);
  EXPECT_EQ(port.read(kControl, 2, GBA_REGION_CONFIG), before | kErrorReports);
}

// Uapi rule 1.
TEST_F(Protocol, AccessesOfNoBytesDoNothing) {
  Port port(path());
  for (const std::uint64_t offset : {std::uint64_t{GBA_REG_CAPS}, std::uint64_t{GBA_REG_CMD} + 1}) {
    const vfio_user_region_access access{.offset = offset, .region = GBA_REGION_CONTROL, .count = 0};
    const auto read = port.client().call(VFIO_USER_REGION_READ, bytes_of(access));
    EXPECT_EQ(read.error(), 0);
    EXPECT_EQ(read.payload.size(), sizeof access);
    EXPECT_EQ(port.client().call(VFIO_USER_REGION_WRITE, bytes_of(access)).error(), 0);
  }
  EXPECT_EQ(port.read(GBA_REG_FAULT), 0U);
}

// Uapi rule 1: the device does not join what was split on its way.
TEST_F(Protocol, HalvesOfARegisterAreAccessesOfAnotherSize) {
  Port port(path());
  EXPECT_EQ(port.read(GBA_REG_CAPS, 4), 0U);
  EXPECT_EQ(port.read(GBA_REG_CAPS + 4, 4), 0U);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS));
  EXPECT_EQ(port.read(GBA_REG_FAULT_ADDR), GBA_REG_CAPS);
  port.write(GBA_REG_CMD, GBA_CMD_ALLOC, 4);
  port.write(GBA_REG_CMD + 4, 0, 4);
  EXPECT_EQ(port.command(GBA_CMD_ALLOC), unsigned{GBA_CMD_OK});
  EXPECT_EQ(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, port.result()), 0U) << "the halves were no command";
}

TEST_F(Protocol, UnknownCommandsAreRefusedAndTheConnectionStays) {
  Port port(path());
  for (const std::uint16_t command : std::array<std::uint16_t, 6>{0, 11, 12, 14, 19, 0xffff}) {
    EXPECT_EQ(port.client().call(command, {}).error(), EINVAL) << command;
  }
  EXPECT_EQ(port.client().call(VFIO_USER_DEVICE_FEATURE, std::vector<std::byte>(8)).error(), ENOTSUP);
  const std::vector<std::byte> nonsense(8);
  EXPECT_EQ(port.client().call(VFIO_USER_DEVICE_RESET, nonsense).error(), EINVAL);
  EXPECT_EQ(port.read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
}

TEST_F(Protocol, NoReplyIsHonouredForFailuresToo) {
  Port port(path());
  auto& client = port.client();
  const vfio_user_region_access access{.offset = GBA_REG_CMD, .region = GBA_REGION_CONTROL, .count = 8};
  const std::uint64_t alloc = GBA_CMD_ALLOC;
  const auto quiet = VFIO_USER_TYPE_COMMAND | VFIO_USER_NO_REPLY;
  client.send_bytes(client.frame(VFIO_USER_REGION_WRITE, raw::join(bytes_of(access), bytes_of(alloc)), quiet));
  client.send_bytes(client.frame(99, {}, quiet));
  EXPECT_EQ(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, port.read(GBA_REG_CMD_STATUS)), unsigned{GBA_CMD_OK});
  EXPECT_NE(port.read(GBA_REG_CMD_RESULT), 0U);
}

TEST_F(Protocol, PipelinedRequestsAreAnsweredInOrder) {
  Port port(path());
  auto& client = port.client();
  std::vector<std::byte> all;
  for (unsigned index = 0; index < 300; ++index) {
    const vfio_user_region_access access{.offset = GBA_REG_MAGIC, .region = GBA_REGION_CONTROL, .count = 4};
    auto frame = client.frame(VFIO_USER_REGION_READ, bytes_of(access));
    const auto id = static_cast<std::uint16_t>(index);
    std::memcpy(frame.data(), &id, sizeof id);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  ASSERT_TRUE(client.send_bytes(all));
  for (unsigned index = 0; index < 300; ++index) {
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.msg_id, index);
    EXPECT_EQ(reply->as<std::uint32_t>(sizeof(vfio_user_region_access)), GBA_MAGIC_VALUE);
  }
}

TEST_F(Protocol, SeveralWritesMayComeInOneMessageIfThatWasAgreed) {
  struct {
    std::uint64_t count = 2;
    std::array<vfio_user_write_multi_entry, 2> writes{};
  } request;
  request.writes[0] = {.offset = 0x0c, .region = GBA_REGION_CONFIG, .count = 1, .data = {8}};
  request.writes[1] = {.offset = 0x0d, .region = GBA_REGION_CONFIG, .count = 1, .data = {9}};
  Client client(path());
  ASSERT_EQ(client.version(R"({"capabilities":{"write_multiple":true}})").error(), 0);
  EXPECT_EQ(client.call(VFIO_USER_REGION_WRITE_MULTI, bytes_of(request)).as<std::uint64_t>(), 2U);
  request.writes[1].count = 9;
  EXPECT_EQ(client.call(VFIO_USER_REGION_WRITE_MULTI, bytes_of(request)).as<std::uint64_t>(), 1U);
  request.count = 3;
  EXPECT_EQ(client.call(VFIO_USER_REGION_WRITE_MULTI, bytes_of(request)).error(), EINVAL);
  request.count = ~std::uint64_t{0} / 24 + 1;
  EXPECT_EQ(client.call(VFIO_USER_REGION_WRITE_MULTI, bytes_of(request)).error(), EINVAL);
  Port plain(path());
  EXPECT_EQ(plain.client().call(VFIO_USER_REGION_WRITE_MULTI, bytes_of(request)).error(), EINVAL);
}

}  // namespace
