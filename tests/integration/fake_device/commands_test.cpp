// SPDX-License-Identifier: Apache-2.0
// vfio-user, command by command: the cases that protocol_test and dma_interrupt_test do not have.
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/integration/fake_device/device_fixture.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::DeviceTest;
using raw::kArm;
using raw::kFire;
using raw::Port;

constexpr std::uint64_t kIova = 0x10000000;

class Commands : public DeviceTest {
 protected:
  /// The errno of the reply to `payload`, a struct that begins with argsz, if its argsz or its length is changed.
  template <typename T>
  static int with_argsz(Client& client, std::uint16_t command, T payload, std::uint32_t argsz) {
    payload.argsz = argsz;
    return client.call(command, bytes_of(payload)).error();
  }
  template <typename T>
  static int with_length(Client& client, std::uint16_t command, const T& payload, std::size_t length) {
    auto bytes = bytes_of(payload);
    bytes.resize(length);
    return client.call(command, bytes).error();
  }
  template <typename T>
  void expect_exact(Client& client, std::uint16_t command, const T& payload) {
    SCOPED_TRACE("command " + std::to_string(command));
    EXPECT_EQ(with_length(client, command, payload, sizeof payload - 1), EINVAL);
    EXPECT_EQ(with_length(client, command, payload, sizeof payload + 1), EINVAL);
    EXPECT_EQ(with_length(client, command, payload, 0), EINVAL);
    EXPECT_EQ(with_argsz(client, command, payload, sizeof payload - 1), EINVAL);
    EXPECT_EQ(with_argsz(client, command, payload, 0), EINVAL);
  }

  int set_irqs(Client& client, std::uint32_t flags, std::uint32_t index, std::uint32_t start, std::uint32_t count,
               std::span<const int> fds = {}, std::uint32_t argsz = sizeof(vfio_user_irq_set)) {
    const vfio_user_irq_set set{.argsz = argsz, .flags = flags, .index = index, .start = start, .count = count};
    return client.call(VFIO_USER_DEVICE_SET_IRQS, bytes_of(set), fds).error();
  }

  /// How many mappings of the client's memory the device has.
  [[nodiscard]] std::size_t client_mappings() {
    std::ifstream maps("/proc/" + std::to_string(device().pid()) + "/maps");
    std::size_t found = 0;
    for (std::string line; std::getline(maps, line);) {
      found += line.find("/memfd:raw-client") != std::string::npos ? 1 : 0;
    }
    return found;
  }
  /// A little later: what is not used any more is unmapped by another thread.
  void expect_mappings(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (client_mappings() != count && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(client_mappings(), count);
  }
};

TEST_F(Commands, StructsOfAnotherLengthOrArgszAreRefused) {
  Port port(path());
  auto& client = port.client();
  vfio_user_region_info region{};
  region.argsz = sizeof region;
  expect_exact(client, VFIO_USER_DEVICE_GET_REGION_INFO, region);
  const vfio_user_device_info device{.argsz = sizeof device, .flags = 0, .num_regions = 0, .num_irqs = 0};
  expect_exact(client, VFIO_USER_DEVICE_GET_INFO, device);
  const vfio_user_irq_info irq{.argsz = sizeof irq, .flags = 0, .index = 2, .count = 0};
  expect_exact(client, VFIO_USER_DEVICE_GET_IRQ_INFO, irq);
  const vfio_user_region_io_fds fds{.argsz = sizeof fds, .flags = 0, .index = 2, .count = 0};
  expect_exact(client, VFIO_USER_DEVICE_GET_REGION_IO_FDS, fds);
  const vfio_user_dma_map map{.argsz = sizeof map, .flags = 3, .offset = 0, .address = kIova, .size = 0x1000};
  expect_exact(client, VFIO_USER_DMA_MAP, map);
  const vfio_user_dma_unmap unmap{.argsz = sizeof unmap, .flags = 0, .address = kIova, .size = 0x1000};
  expect_exact(client, VFIO_USER_DMA_UNMAP, unmap);
  EXPECT_EQ(port.unmap_dma(kIova, 0x1000), ENOENT) << "a refused map has taken effect";
}

// More room than needed is not an error; the reply says how much is needed.
TEST_F(Commands, RoomyRequestsAreAnsweredWithTheLengthOfTheReply) {
  Port port(path());
  auto& client = port.client();
  for (unsigned index = 0; index < GBA_NUM_REGIONS; ++index) {
    for (const std::uint32_t argsz : {32U, 4096U, 0xffffffffU}) {
      vfio_user_region_info request{};
      request.argsz = argsz;
      request.index = index;
      const auto reply = client.call(VFIO_USER_DEVICE_GET_REGION_INFO, bytes_of(request));
      const auto info = reply.as<vfio_user_region_info>();
      EXPECT_EQ(reply.error(), 0);
      EXPECT_EQ(reply.payload.size(), sizeof info);
      EXPECT_EQ(info.argsz, sizeof info);
      EXPECT_EQ(info.index, index);
      EXPECT_EQ(info.flags & VFIO_USER_REGION_CAPS, 0U);
      EXPECT_EQ(info.cap_offset, 0U);
      EXPECT_EQ(info.offset, 0U);
      EXPECT_EQ(info.size & (info.size - 1), 0U) << "sizes are powers of two";
      EXPECT_EQ(info.size == 0, info.flags == 0) << "a missing region has neither size nor flags";
    }
  }
  const vfio_user_device_info device{.argsz = 4096, .flags = 0, .num_regions = 0, .num_irqs = 0};
  EXPECT_EQ(client.call(VFIO_USER_DEVICE_GET_INFO, bytes_of(device)).as<vfio_user_device_info>().argsz, 16U);
  const vfio_user_irq_info irq{.argsz = 4096, .flags = 0, .index = GBA_IRQ_MSIX, .count = 0};
  EXPECT_EQ(client.call(VFIO_USER_DEVICE_GET_IRQ_INFO, bytes_of(irq)).as<vfio_user_irq_info>().argsz, 16U);
}

TEST_F(Commands, DmaMapTakesMemoryWithoutAFileForReadingToo) {
  Port port(path());
  EXPECT_EQ(port.map_dma(kIova, 0x1000, 0, -1, VFIO_USER_DMA_READABLE), 0) << "a ROM";
  EXPECT_EQ(port.map_dma(kIova, 0x1000, 0, -1), EEXIST);
  for (const std::uint32_t flags : {4U, 8U, 7U, 0xbU, 0x80000003U}) {
    EXPECT_EQ(port.map_dma(2 * kIova, 0x1000, 0, -1, flags), EINVAL) << "flags " << flags;
  }
  EXPECT_EQ(port.unmap_dma(kIova, 0x1000), 0);
}

TEST_F(Commands, DmaUnmapEchoesItsEntry) {
  Port port(path());
  ASSERT_EQ(port.map_dma(kIova, 0x1000, 0, -1), 0);
  const vfio_user_dma_unmap request{.argsz = sizeof request, .flags = 0, .address = kIova, .size = 0x1000};
  const auto reply = port.client().call(VFIO_USER_DMA_UNMAP, bytes_of(request));
  EXPECT_EQ(reply.payload, bytes_of(request));
}

// The specification wants the address and size of one map. A hypervisor whose guest changes the domain of an emulated
// IOMMU sends the whole address space in a few large pieces instead, and no map in these may stay.
TEST_F(Commands, DmaUnmapTakesWholeMapsOrAll) {
  Port port(path());
  const auto memory = raw::make_memfd(0x4000);
  const auto map_three = [&] {
    for (std::uint64_t page = 0; page < 3; ++page) {
      ASSERT_EQ(port.map_dma(kIova + page * 0x1000, 0x1000, page * 0x1000, memory.get()), 0);
    }
  };
  map_three();
  EXPECT_EQ(port.unmap_dma(kIova + 0x800, 0x3000), ENOENT) << "it would cut the first map";
  EXPECT_EQ(port.unmap_dma(kIova, 0), ENOENT);
  EXPECT_EQ(port.unmap_dma(0, 0), ENOENT);
  EXPECT_EQ(port.unmap_dma(~std::uint64_t{0}, ~std::uint64_t{0}), ENOENT);
  EXPECT_EQ(port.unmap_dma(0, 0x1000, VFIO_USER_DMA_UNMAP_ALL), EINVAL);
  EXPECT_EQ(port.unmap_dma(0, 0, VFIO_USER_DMA_UNMAP_ALL | VFIO_USER_DMA_UNMAP_BITMAP), EINVAL);
  EXPECT_EQ(port.unmap_dma(0, 0, 4), EINVAL);
  EXPECT_EQ(port.map_dma(kIova, 0x1000, 0, memory.get()), EEXIST) << "a refused unmap removed nothing";
  EXPECT_EQ(port.unmap_dma(kIova, 0x2000), 0);
  EXPECT_EQ(port.unmap_dma(kIova, 0x2000), ENOENT);
  EXPECT_EQ(port.unmap_dma(0, std::uint64_t{1} << 63), 0);
  EXPECT_EQ(port.unmap_dma(kIova + 0x2000, 0x1000), ENOENT);
  map_three();
  EXPECT_EQ(port.unmap_dma(0, 0, VFIO_USER_DMA_UNMAP_ALL), 0);
  EXPECT_EQ(port.unmap_dma(0, 0, VFIO_USER_DMA_UNMAP_ALL), 0) << "it may be sent when nothing is mapped";
  map_three();
}

// The device stores nothing there after the reply, but unmaps on another thread.
TEST_F(Commands, DmaUnmapReleasesTheMemory) {
  Port port(path());
  const auto own = client_mappings();
  const auto memory = raw::make_memfd(0x4000);
  ASSERT_EQ(port.map_dma(kIova, 0x1000, 0, memory.get()), 0);
  ASSERT_EQ(port.map_dma(kIova + 0x1000, 0x1000, 0x1000, memory.get()), 0);
  expect_mappings(own + 1);  // a file is mapped once
  ASSERT_EQ(port.unmap_dma(kIova, 0x1000), 0);
  expect_mappings(own + 1);
  ASSERT_EQ(port.unmap_dma(kIova + 0x1000, 0x1000), 0);
  expect_mappings(own);
  ASSERT_EQ(port.map_dma(kIova, 0x1000, 0, memory.get()), 0);
  ASSERT_EQ(port.unmap_dma(0, 0, VFIO_USER_DMA_UNMAP_ALL), 0);
  expect_mappings(0);
}

TEST_F(Commands, ReadOnlyMemoryTakesNoRelease) {
  Port port(path());
  const auto memory = raw::make_memfd(0x1000);
  ASSERT_EQ(port.map_dma(kIova, 0x1000, 0, memory.get(), VFIO_USER_DMA_READABLE), 0);
  const auto group = port.make_group(1);
  port.join(group, 0);
  ASSERT_EQ(port.write(GBA_GROUP_BASE(group.id) + GBA_GROUP_RELEASE_ADDR, kIova), 0);
  port.arrive(group, 0, 1);
  port.write(GBA_REG_KICK, 1);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_DMA));
  EXPECT_EQ(port.read(GBA_REG_FAULT_ADDR), kIova);
}

TEST_F(Commands, SetIrqsOfWrongLengthOrLinesIsRefused) {
  Port port(path());
  auto& client = port.client();
  const vfio_user_irq_set set{.argsz = sizeof set, .flags = kFire, .index = GBA_IRQ_MSIX, .start = 0, .count = 1};
  EXPECT_EQ(with_length(client, VFIO_USER_DEVICE_SET_IRQS, set, sizeof set - 1), EINVAL);
  EXPECT_EQ(with_length(client, VFIO_USER_DEVICE_SET_IRQS, set, 0), EINVAL);
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 0, 1, {}, 19), EINVAL);
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 0, 1, {}, 0), EINVAL);
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 0, 1, {}, 4096), 0);
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 0, GBA_MSIX_VECTORS), 0) << "lines without an eventfd";
  EXPECT_EQ(set_irqs(client, kFire, 0xffffffff, 0, 1), EINVAL);
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 0xffffffff, 1), EINVAL);
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 0xffffffff, 0xffffffff), EINVAL);
  for (const unsigned index : {GBA_IRQ_ERR, GBA_IRQ_REQ}) {
    EXPECT_EQ(set_irqs(client, kFire, index, 0, 2), EINVAL);
    EXPECT_EQ(set_irqs(client, kFire, index, 1, 1), EINVAL);
    EXPECT_EQ(set_irqs(client, VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_UNMASK, index, 0, 1), EINVAL);
    EXPECT_EQ(set_irqs(client, kFire, index, 0, 0), 0) << "disarms the index";
  }
  for (const unsigned index : {GBA_IRQ_INTX, GBA_IRQ_MSI}) {
    EXPECT_EQ(set_irqs(client, kFire, index, 0, 0), EINVAL) << "an index without lines";
    EXPECT_EQ(set_irqs(client, kFire, index, 0, 1), EINVAL);
  }
}

TEST_F(Commands, SetIrqsTakesNoDescriptorsWithBools) {
  Port port(path());
  const auto eventfd = raw::make_eventfd();
  const vfio_user_irq_set set{.argsz = sizeof set,
                              .flags = VFIO_USER_IRQ_DATA_BOOL | VFIO_USER_IRQ_ACTION_TRIGGER,
                              .index = GBA_IRQ_MSIX,
                              .start = 0,
                              .count = 1};
  const std::array one{std::byte{1}};
  EXPECT_EQ(
      port.client().call(VFIO_USER_DEVICE_SET_IRQS, raw::join(bytes_of(set), one), std::array{eventfd.get()}).error(),
      EINVAL);
}

// A client with a small max_msg_fds arms its lines in pieces, and may arm a line again.
TEST_F(Commands, SetIrqsArmsInPiecesAndAgain) {
  Port port(path());
  auto& client = port.client();
  const auto first = raw::make_eventfd();
  const auto second = raw::make_eventfd();
  const auto instead = raw::make_eventfd();
  ASSERT_EQ(set_irqs(client, kArm, GBA_IRQ_MSIX, 0, 1, std::array{first.get()}), 0);
  ASSERT_EQ(set_irqs(client, kArm, GBA_IRQ_MSIX, 1, 1, std::array{second.get()}), 0);
  ASSERT_EQ(set_irqs(client, kArm, GBA_IRQ_MSIX, 0, 1, std::array{instead.get()}), 0);
  ASSERT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 0, 2), 0);
  EXPECT_EQ(raw::wait_event(second.get()), 1U);
  EXPECT_EQ(raw::wait_event(instead.get()), 1U);
  EXPECT_EQ(raw::wait_event(first.get(), 0), 0U) << "no longer armed";
}

TEST_F(Commands, RegionAccessesOfWrongLengthAreRefused) {
  Port port(path());
  auto& client = port.client();
  const vfio_user_region_access access{.offset = 0, .region = GBA_REGION_CONFIG, .count = 0};
  for (const std::uint16_t command : {VFIO_USER_REGION_READ, VFIO_USER_REGION_WRITE}) {
    EXPECT_EQ(with_length(client, command, access, sizeof access - 1), EINVAL);
    EXPECT_EQ(with_length(client, command, access, 0), EINVAL);
    const auto reply = client.call(command, bytes_of(access));
    EXPECT_EQ(reply.error(), 0) << "an access of no bytes is valid";
    EXPECT_EQ(reply.payload, bytes_of(access));
  }
}

TEST_F(Commands, MappableRegionsAreReachedByMessagesToo) {
  Port port(path());
  ASSERT_EQ(port.write(8, 0x1122334455667788, 8, GBA_REGION_FLAGS), 0);
  EXPECT_EQ(port.bar_flags().word(8).load(), 0x1122334455667788);
  ASSERT_EQ(port.write(11, 0xff, 1, GBA_REGION_FLAGS), 0);
  EXPECT_EQ(port.read(8, 8, GBA_REGION_FLAGS), 0x11223344ff667788);
  EXPECT_EQ(port.read(10, 3, GBA_REGION_FLAGS), 0x44ff66U);
}

TEST_F(Commands, ManyWritesMayComeAtOnceWithoutAReply) {
  constexpr std::uint64_t kWrites = 200;  // as many as a known client sends
  Client client(path());
  ASSERT_EQ(client.version(R"({"capabilities":{"write_multiple":true}})").error(), 0);
  auto payload = bytes_of(kWrites);
  for (std::uint64_t index = 0; index < kWrites; ++index) {
    const vfio_user_write_multi_entry entry{
        .offset = index, .region = GBA_REGION_FLAGS, .count = 1, .data = {static_cast<std::uint8_t>(index ^ 0xa5)}};
    payload = raw::join(std::move(payload), bytes_of(entry));
  }
  client.send_bytes(client.frame(VFIO_USER_REGION_WRITE_MULTI, payload, VFIO_USER_NO_REPLY));
  EXPECT_EQ(client.call(VFIO_USER_REGION_WRITE_MULTI, payload).as<std::uint64_t>(), kWrites);
  EXPECT_EQ(client.call(VFIO_USER_REGION_WRITE_MULTI, bytes_of(std::uint64_t{0})).as<std::uint64_t>(), 0U);
  const vfio_user_region_access access{.offset = 0, .region = GBA_REGION_FLAGS, .count = kWrites};
  const auto reply = client.call(VFIO_USER_REGION_READ, bytes_of(access));
  for (std::uint64_t index = 0; index < kWrites; ++index) {
    ASSERT_EQ(reply.as<std::uint8_t>(sizeof access + index), index ^ 0xa5);
  }
}

TEST_F(Commands, ResetKeepsConfigSpaceInterruptsAndMemory) {
  Port port(path());
  const auto eventfd = raw::make_eventfd();
  ASSERT_EQ(port.arm(GBA_IRQ_MSIX, 3, std::array{eventfd.get()}), 0);
  ASSERT_EQ(port.map_dma(kIova, 0x1000, 0, -1), 0);
  const auto group = port.make_group(1);
  port.join(group, 0);
  const auto reply = port.client().call(VFIO_USER_DEVICE_RESET, {});
  EXPECT_EQ(reply.error(), 0);
  EXPECT_TRUE(reply.payload.empty());
  EXPECT_EQ(port.read(0x04, 2, GBA_REGION_CONFIG) & 0x6, 0x6U);
  EXPECT_EQ(set_irqs(port.client(), kFire, GBA_IRQ_MSIX, 3, 1), 0);
  EXPECT_EQ(raw::wait_event(eventfd.get()), 1U);
  EXPECT_EQ(port.unmap_dma(kIova, 0x1000), 0);
  EXPECT_EQ(port.command(GBA_CMD_LEAVE, group.id), unsigned{GBA_CMD_ERROR_GROUP}) << "its groups are gone";
}

TEST_F(Commands, ForMigrationAreNotSupported) {
  Port port(path());
  auto& client = port.client();
  constexpr std::uint32_t kGet = 1U << 16;
  constexpr std::uint32_t kSet = 1U << 17;
  constexpr std::uint32_t kProbe = 1U << 18;
  for (std::uint32_t feature = 0; feature < 12; ++feature) {
    for (const std::uint32_t action : {kGet, kSet, kProbe | kGet, kProbe | kSet}) {
      const std::array<std::uint32_t, 2> payload{sizeof payload, action | feature};
      EXPECT_EQ(client.call(VFIO_USER_DEVICE_FEATURE, bytes_of(payload)).error(), ENOTSUP);
    }
  }
  EXPECT_EQ(client.call(VFIO_USER_MIG_DATA_READ, bytes_of(std::uint64_t{8})).error(), ENOTSUP);
  EXPECT_EQ(client.call(VFIO_USER_MIG_DATA_WRITE, std::vector<std::byte>(24)).error(), ENOTSUP);
}

class StoresByMessage : public Commands {
 protected:
  /// Runs a round that the server releases by a DMA_WRITE, and returns that message.
  raw::Reply receive_store(Port& port) {
    EXPECT_EQ(port.map_dma(kIova, 0x1000, 0, -1), 0);
    const auto group = port.make_group(1);
    port.join(group, 0);
    EXPECT_EQ(port.write(GBA_GROUP_BASE(group.id) + GBA_GROUP_RELEASE_ADDR, kIova), 0);
    port.arrive(group, 0, 1);
    auto store = port.client().receive();
    EXPECT_TRUE(store);
    return store ? *std::move(store) : raw::Reply{};
  }
  static void answer(Client& client, const raw::Reply& store, std::uint16_t id_offset, std::uint16_t command,
                     std::span<const std::byte> payload) {
    auto frame = client.frame(command, payload, VFIO_USER_TYPE_REPLY);
    const auto id = static_cast<std::uint16_t>(store.header.msg_id + id_offset);
    std::memcpy(frame.data(), &id, sizeof id);
    client.send_bytes(frame);
  }
};

// The specification gives the count in the reply 4 bytes; other implementations send 8.
TEST_F(StoresByMessage, MayBeAnsweredInAnyLengthThatClientsUse) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{12}, std::size_t{16}, std::size_t{24}}) {
    Port port(path());
    const auto store = receive_store(port);
    EXPECT_EQ(store.header.msg_size, sizeof(vfio_user_header) + sizeof(vfio_user_dma_access) + 8);
    answer(port.client(), store, 0, VFIO_USER_DMA_WRITE, std::vector<std::byte>(length));
    EXPECT_EQ(port.read(GBA_REG_FAULT), 0U) << length;
  }
}

TEST_F(StoresByMessage, AnsweredTwiceOrWronglyEndTheConnection) {
  const std::vector<std::byte> payload(16);
  {
    Port port(path());
    const auto store = receive_store(port);
    answer(port.client(), store, 1, VFIO_USER_DMA_WRITE, payload);
    EXPECT_EQ(port.client().receive(), std::nullopt) << "the id of another message";
  }
  {
    Port port(path());
    const auto store = receive_store(port);
    answer(port.client(), store, 0, VFIO_USER_DMA_READ, payload);
    EXPECT_EQ(port.client().receive(), std::nullopt) << "another command";
  }
  {
    Port port(path());
    const auto store = receive_store(port);
    answer(port.client(), store, 0, VFIO_USER_DMA_WRITE, payload);
    answer(port.client(), store, 0, VFIO_USER_DMA_WRITE, payload);
    EXPECT_EQ(port.client().receive(), std::nullopt) << "twice";
  }
}

TEST_F(StoresByMessage, AreFramedAmongTheRepliesToPendingRequests) {
  Port port(path());
  auto& client = port.client();
  ASSERT_EQ(port.map_dma(kIova, 0x1000, 0, -1), 0);
  const auto group = port.make_group(1);
  port.join(group, 0);
  ASSERT_EQ(port.write(GBA_GROUP_BASE(group.id) + GBA_GROUP_RELEASE_ADDR, kIova), 0);
  constexpr unsigned kRounds = 100;
  for (unsigned round = 1; round <= kRounds; ++round) {
    const vfio_user_region_access ring{
        .offset = GBA_DOORBELL_SLOT(group.id), .region = GBA_REGION_DOORBELLS, .count = 8};
    const auto word = GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, round) | GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1);
    client.send_bytes(client.frame(VFIO_USER_REGION_WRITE, raw::join(bytes_of(ring), bytes_of(word))));
  }
  unsigned stores = 0;
  unsigned replies = 0;
  while (stores < kRounds || replies < kRounds) {
    const auto message = client.receive();
    ASSERT_TRUE(message);
    if (message->header.flags == VFIO_USER_TYPE_COMMAND) {
      EXPECT_EQ(message->as<std::uint64_t>(sizeof(vfio_user_dma_access)), ++stores) << "stores keep their order";
      answer(client, *message, 0, VFIO_USER_DMA_WRITE, std::vector<std::byte>(16));
    } else {
      EXPECT_EQ(message->error(), 0);
      ++replies;
    }
  }
  EXPECT_EQ(port.read(GBA_REG_FAULT), 0U);
}

}  // namespace
