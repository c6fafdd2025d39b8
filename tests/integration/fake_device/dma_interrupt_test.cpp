// SPDX-License-Identifier: Apache-2.0
// vfio-user over a raw socket: DMA maps and interrupts.
#include <fcntl.h>

#include <array>

#include "tests/integration/fake_device/device_fixture.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::DeviceTest;
using raw::kArm;
using raw::kFire;
using raw::Port;

class DmaAndInterrupts : public DeviceTest {
 protected:
  raw::Reply set_irqs(Client& client, std::uint32_t flags, std::uint32_t index, std::uint32_t start,
                      std::uint32_t count, std::span<const std::byte> bools = {}, std::span<const int> fds = {}) {
    const vfio_user_irq_set set{.argsz = sizeof set, .flags = flags, .index = index, .start = start, .count = count};
    return client.call(VFIO_USER_DEVICE_SET_IRQS, raw::join(bytes_of(set), bools), fds);
  }
};

TEST_F(DmaAndInterrupts, DmaMapsAreCheckedOneByOne) {
  Port port(path());
  const auto memory = raw::make_memfd(0x4000);
  const int fd = memory.get();
  constexpr std::uint64_t kAt = 0x10000000;
  EXPECT_EQ(port.map_dma(kAt, 0, 0, fd), EINVAL) << "size 0";
  EXPECT_EQ(port.map_dma(kAt, 0x800, 0, fd), EINVAL) << "less than a page";
  EXPECT_EQ(port.map_dma(kAt + 8, 0x1000, 0, fd), EINVAL);
  EXPECT_EQ(port.map_dma(kAt, 0x1000, 0x10, fd), EINVAL);
  EXPECT_EQ(port.map_dma(~std::uint64_t{0xfff}, 0x2000, 0, fd), EINVAL) << "past the end of the address space";
  EXPECT_EQ(port.map_dma(kAt, 0x1000, ~std::uint64_t{0xfff}, fd), EINVAL);
  EXPECT_EQ(port.map_dma(kAt, 0x5000, 0, fd), EINVAL) << "past the end of the file";
  EXPECT_EQ(port.map_dma(kAt, 0x1000, 0, fd, 0), EINVAL);
  EXPECT_EQ(port.map_dma(kAt, 0x1000, 0, fd, 0x10), EINVAL);
  EXPECT_EQ(port.map_dma(kAt, 0x4000, 0, fd), 0);
  EXPECT_EQ(port.map_dma(kAt, 0x4000, 0, fd), EEXIST);
  EXPECT_EQ(port.map_dma(kAt + 0x3000, 0x1000, 0, fd), EEXIST);
  EXPECT_EQ(port.map_dma(kAt - 0x1000, 0x2000, 0, fd), EEXIST);
  EXPECT_EQ(port.map_dma(kAt - 0x1000, 0x1000, 0, fd), 0);
  EXPECT_EQ(port.map_dma(kAt + 0x4000, 0x1000, 0, fd), 0);
  EXPECT_EQ(port.map_dma(~std::uint64_t{0xfff}, 0x1000, 0, fd), 0) << "the last page of the address space";

  const raw::Fd read_only(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(port.map_dma(0x20000000, 0x1000, 0, read_only.get(), 3), EACCES);
  EXPECT_EQ(port.map_dma(0x20000000, 0x1000, 0, read_only.get(), 1), 0);
  const auto eventfd = raw::make_eventfd();
  EXPECT_EQ(port.map_dma(0x30000000, 0x1000, 0, eventfd.get()), EINVAL) << "no memory";
}

TEST_F(DmaAndInterrupts, DmaUnmapsMustMatchAMap) {
  Port port(path());
  const auto memory = raw::make_memfd(0x4000);
  constexpr std::uint64_t kAt = 0x10000000;
  ASSERT_EQ(port.map_dma(kAt, 0x4000, 0, memory.get()), 0);
  EXPECT_EQ(port.unmap_dma(kAt, 0x1000), ENOENT);
  EXPECT_EQ(port.unmap_dma(kAt + 0x1000, 0x3000), ENOENT);
  EXPECT_EQ(port.unmap_dma(0x7000000, 0x1000), ENOENT);
  EXPECT_EQ(port.unmap_dma(kAt, 0x4000, VFIO_USER_DMA_UNMAP_BITMAP), EINVAL);
  EXPECT_EQ(port.unmap_dma(kAt, 0x4000), 0);
  EXPECT_EQ(port.unmap_dma(kAt, 0x4000), ENOENT);
  ASSERT_EQ(port.map_dma(kAt, 0x4000, 0, memory.get()), 0);
  EXPECT_EQ(port.unmap_dma(kAt, 0, VFIO_USER_DMA_UNMAP_ALL), EINVAL);
  EXPECT_EQ(port.unmap_dma(0, 0, VFIO_USER_DMA_UNMAP_ALL), 0);
  EXPECT_EQ(port.unmap_dma(kAt, 0x4000), ENOENT);
}

TEST_F(DmaAndInterrupts, TensOfThousandsOfPagesOfOneFileCostNoDescriptors) {
  Port port(path());
  constexpr std::uint64_t kPages = 20000;
  const auto memory = raw::make_memfd(kPages * 0x1000);
  const auto before = open_files();
  for (std::uint64_t page = 0; page < kPages; ++page) {
    ASSERT_EQ(port.map_dma(0x40000000 + page * 0x1000, 0x1000, page * 0x1000, memory.get()), 0) << page;
  }
  expect_files(before + 1);
}

TEST_F(DmaAndInterrupts, InterruptsAreCountedByIndex) {
  Port port(path());
  const std::array<unsigned, GBA_NUM_IRQS> counts{0, 0, GBA_MSIX_VECTORS, 1, 1};
  for (unsigned index = 0; index < GBA_NUM_IRQS; ++index) {
    const vfio_user_irq_info request{.argsz = sizeof request, .flags = 0, .index = index, .count = 0};
    const auto info = port.client().call(VFIO_USER_DEVICE_GET_IRQ_INFO, bytes_of(request)).as<vfio_user_irq_info>();
    EXPECT_EQ(info.count, counts[index]);
    EXPECT_NE(info.flags & VFIO_USER_IRQ_INFO_EVENTFD, 0U);
  }
  const vfio_user_irq_info none{.argsz = sizeof none, .flags = 0, .index = GBA_NUM_IRQS, .count = 0};
  EXPECT_EQ(port.client().call(VFIO_USER_DEVICE_GET_IRQ_INFO, bytes_of(none)).error(), EINVAL);
}

TEST_F(DmaAndInterrupts, EveryFormOfSetIrqsHasItsEffect) {
  Port port(path());
  auto& client = port.client();
  const auto first = raw::make_eventfd();
  const auto second = raw::make_eventfd();
  const std::array fds{first.get(), second.get()};
  const auto count_of = [](const raw::Fd& fd) { return raw::wait_event(fd.get(), 0); };
  // The reply may come first: the device signals later if its time for interrupts is used up.
  const auto arrives = [](const raw::Fd& fd) { return raw::wait_event(fd.get()) == 1; };

  ASSERT_EQ(set_irqs(client, kArm, GBA_IRQ_MSIX, 3, 2, {}, fds).error(), 0);
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 3, 2).error(), 0);
  EXPECT_TRUE(arrives(first));
  EXPECT_TRUE(arrives(second));
  const std::array bools{std::byte{0}, std::byte{1}};
  constexpr auto kBool = VFIO_USER_IRQ_DATA_BOOL | VFIO_USER_IRQ_ACTION_TRIGGER;
  EXPECT_EQ(set_irqs(client, kBool, GBA_IRQ_MSIX, 3, 2, bools).error(), 0);
  EXPECT_EQ(count_of(first), 0U);
  EXPECT_TRUE(arrives(second));

  constexpr auto kMask = VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_MASK;
  constexpr auto kUnmask = VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_UNMASK;
  EXPECT_EQ(set_irqs(client, kMask, GBA_IRQ_MSIX, 3, 1).error(), 0);
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 3, 1).error(), 0);
  EXPECT_EQ(count_of(first), 0U);
  EXPECT_EQ(set_irqs(client, kUnmask, GBA_IRQ_MSIX, 3, 1).error(), 0);
  EXPECT_TRUE(arrives(first)) << "an interrupt that was masked arrives now";

  EXPECT_EQ(set_irqs(client, kArm, GBA_IRQ_MSIX, 3, 1).error(), 0);  // no descriptor: disarmed
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 3, 2).error(), 0);
  EXPECT_EQ(count_of(first), 0U);
  EXPECT_TRUE(arrives(second));
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 0, 0).error(), 0);  // the whole index disarmed
  EXPECT_EQ(set_irqs(client, kFire, GBA_IRQ_MSIX, 3, 2).error(), 0);
  EXPECT_EQ(count_of(second), 0U);
}

TEST_F(DmaAndInterrupts, InvalidSetIrqsIsRefused) {
  Port port(path());
  auto& client = port.client();
  constexpr auto kNone = VFIO_USER_IRQ_DATA_NONE;
  constexpr auto kBool = VFIO_USER_IRQ_DATA_BOOL;
  constexpr auto kEvent = VFIO_USER_IRQ_DATA_EVENTFD;
  constexpr auto kTrigger = VFIO_USER_IRQ_ACTION_TRIGGER;
  constexpr auto kMask = VFIO_USER_IRQ_ACTION_MASK;
  const auto eventfd = raw::make_eventfd();
  const std::array one{eventfd.get()};
  const auto file = raw::make_memfd(4096);
  const std::array no_event{file.get()};
  const std::array<std::byte, 2> bools{};
  EXPECT_EQ(set_irqs(client, kNone | kTrigger, GBA_NUM_IRQS, 0, 1).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone, GBA_IRQ_MSIX, 0, 1).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kTrigger, GBA_IRQ_MSIX, 0, 1).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kBool | kTrigger, GBA_IRQ_MSIX, 0, 1).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kTrigger | kMask, GBA_IRQ_MSIX, 0, 1).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kTrigger | 0x40, GBA_IRQ_MSIX, 0, 1).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kTrigger, GBA_IRQ_MSIX, GBA_MSIX_VECTORS, 0).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kTrigger, GBA_IRQ_MSIX, 1, GBA_MSIX_VECTORS).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kTrigger, GBA_IRQ_MSIX, 1, 0xffffffff).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kTrigger, GBA_IRQ_INTX, 0, 0).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kBool | kTrigger, GBA_IRQ_MSIX, 0, 3, bools).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kTrigger, GBA_IRQ_MSIX, 0, 2, bools).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kEvent | kTrigger, GBA_IRQ_MSIX, 0, 2, {}, one).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kTrigger, GBA_IRQ_MSIX, 0, 1, {}, one).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kEvent | kMask, GBA_IRQ_MSIX, 0, 1, {}, one).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kEvent | kTrigger, GBA_IRQ_MSIX, 0, 1, {}, no_event).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kNone | kMask, GBA_IRQ_ERR, 0, 1).error(), EINVAL);
  EXPECT_EQ(set_irqs(client, kEvent | kTrigger, GBA_IRQ_ERR, 0, 1, {}, one).error(), 0);
  EXPECT_EQ(set_irqs(client, kEvent | kTrigger, GBA_IRQ_REQ, 0, 1, {}, one).error(), 0);
}

TEST_F(DmaAndInterrupts, MemoryWithoutAFileIsWrittenByMessagesBeforeTheInterrupt) {
  Port port(path());
  auto& client = port.client();
  ASSERT_EQ(port.map_dma(0x900000, 0x1000, 0, -1), 0);
  const auto eventfd = raw::make_eventfd();
  const std::array fds{eventfd.get()};
  const auto group = port.make_group(1);
  ASSERT_EQ(port.arm(GBA_IRQ_MSIX, group.id, fds), 0);
  port.join(group, 0);
  ASSERT_EQ(port.write(GBA_GROUP_BASE(group.id) + GBA_GROUP_RELEASE_ADDR, 0x900040), 0);
  port.arrive(group, 0, 1, /*notify=*/true);

  const auto store = client.receive();
  ASSERT_TRUE(store);
  EXPECT_EQ(store->header.command, VFIO_USER_DMA_WRITE);
  EXPECT_EQ(store->header.flags, VFIO_USER_TYPE_COMMAND);
  const auto access = store->as<vfio_user_dma_access>();
  EXPECT_EQ(access.address, 0x900040U);
  EXPECT_EQ(access.count, 8U);
  EXPECT_EQ(store->as<std::uint64_t>(sizeof access), 1U);
  EXPECT_EQ(raw::wait_event(eventfd.get(), 0), 0U) << "the interrupt overtook the store";
  auto answer = client.frame(VFIO_USER_DMA_WRITE, bytes_of(access), VFIO_USER_TYPE_REPLY);
  std::memcpy(answer.data(), &store->header.msg_id, sizeof store->header.msg_id);
  client.send_bytes(answer);
  EXPECT_EQ(raw::wait_event(eventfd.get()), 1U);

  port.arrive(group, 0, 2);
  const auto failing = client.receive();
  ASSERT_TRUE(failing);
  answer = client.frame(VFIO_USER_DMA_WRITE, {}, VFIO_USER_TYPE_REPLY | VFIO_USER_ERROR);
  std::memcpy(answer.data(), &failing->header.msg_id, sizeof failing->header.msg_id);
  client.send_bytes(answer);
  const auto error = client.receive();  // the error word, to the same address
  ASSERT_TRUE(error);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, error->as<std::uint64_t>(sizeof access)), unsigned{GBA_ERROR_DMA_FAULT});
}

}  // namespace
