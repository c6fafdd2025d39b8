// SPDX-License-Identifier: Apache-2.0
// Behaviour that both ways to a device behind the kernel's VFIO, group and character device, share.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "driver/bar_mapping.hpp"
#include "driver/mmio.hpp"
#include "driver/registers.hpp"
#include "tests/unit/driver/vfio_fixture.hpp"

namespace gba::test {
namespace {

using testing::HasSubstr;
using testing::SetErrnoAndReturn;

class VfioDevice : public testing::TestWithParam<Way> {
 protected:
  Backend& open() {
    backend_ = GetParam().open(system_, no_sysfs(), GetParam().nodes).value();
    return *backend_;
  }

  FakeKernel kernel_;
  MockSystemCalls system_{kernel_};
  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(BothWays, VfioDevice, testing::Values(kGroupWay, kCdevWay),
                         [](const auto& way) { return way.param.name; });

TEST_P(VfioDevice, LeavesNothingBehind) {
  EXPECT_EQ(do_everything(GetParam(), system_).text, "");
  EXPECT_EQ(kernel_.left_over(), "");
}

TEST_P(VfioDevice, NamesAnyFailedCallAndLeavesNothingBehind) {
  unsigned failures = 0;
  for (unsigned call = 0;; ++call) {
    FakeKernel kernel;
    kernel.failing_call = call;
    const Error error = do_everything(GetParam(), kernel);
    EXPECT_EQ(kernel.left_over(), "") << "after call " << call << ", " << kernel.failed_call;
    if (kernel.failed_call.empty()) {
      break;
    }
    if (kernel.failed_call == "getrlimit") {
      continue;  // not an error: without the limit the kernel decides
    }
    ++failures;
    EXPECT_EQ(error.code, std::errc::io_error) << error.text;
    EXPECT_THAT(error.text, HasSubstr(kernel.failed_call));
    EXPECT_THAT(error.text, HasSubstr("0000:3b:00.0"));
    EXPECT_THAT(error.text, HasSubstr("input/output error"));
  }
  EXPECT_GT(failures, 25U);
}

TEST_P(VfioDevice, ReportsItsRegions) {
  Backend& device = open();
  EXPECT_EQ(device.path(), "0000:3b:00.0");
  EXPECT_EQ(device.region_info(GBA_REGION_CONTROL)->size, GBA_BAR0_SIZE);
  EXPECT_TRUE(device.region_info(GBA_REGION_CONTROL)->mappable);
  EXPECT_EQ(device.region_info(GBA_REGION_CONFIG)->size, GBA_CONFIG_SIZE);
  EXPECT_FALSE(device.region_info(GBA_REGION_CONFIG)->mappable);
  EXPECT_EQ(device.region_info(1)->size, 0U);
  EXPECT_EQ(device.region_info(77)->size, 0U);
}

TEST_P(VfioDevice, MapsARegionUpToTheMsixPagesThatAnOldKernelExcludes) {
  kernel_.regions[GBA_REGION_CONTROL].areas = {{.offset = 0, .size = 0xf0000}, {.offset = 0xf9000, .size = 0x7000}};
  kernel_.regions[GBA_REGION_FLAGS].areas = {{.offset = 0, .size = GBA_BAR4_SIZE}};
  Backend& device = open();
  EXPECT_FALSE(device.region_info(GBA_REGION_CONTROL)->mappable);
  EXPECT_EQ(device.region_info(GBA_REGION_CONTROL)->front, 0xf0000U);
  EXPECT_TRUE(device.region_info(GBA_REGION_FLAGS)->mappable);
  const auto control = Registers::open(device, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(control) << control.error().text;
  ASSERT_TRUE(control->write<std::uint64_t>(0xf0000 - 8, 7));
  EXPECT_EQ(control->read<std::uint64_t>(0xf0000 - 8).value(), 7U) << "one access of 8 bytes";
  EXPECT_EQ(control->read<std::uint64_t>(0xf0000).error().code, std::errc::not_supported);
}

TEST_P(VfioDevice, ReadsAndWritesAtTheRegionsFileOffset) {
  Backend& device = open();
  const std::array<std::byte, 2> written{std::byte{0x1a}, std::byte{0x2b}};
  ASSERT_TRUE(device.write(GBA_REGION_CONFIG, 0x10, written));
  ASSERT_TRUE(device.post(GBA_REGION_CONTROL, 0x58, written));
  std::array<std::byte, 2> read{};
  ASSERT_TRUE(device.read(GBA_REGION_CONFIG, 0x10, read));
  EXPECT_EQ(read, written);
  EXPECT_EQ(kernel_.bytes(GBA_REGION_CONTROL, 0x58, 2), "\x1a\x2b");
}

/// The kernel accesses a BAR by 4 bytes at most, so a register of 8 bytes would read 0 and ignore writes.
TEST_P(VfioDevice, RefusesToSplitARegisterOfABar) {
  kernel_.regions[GBA_REGION_CONTROL].mappable = false;
  Backend& device = open();
  std::array<std::byte, 8> eight{};
  const auto read = device.read(GBA_REGION_CONTROL, 0x58, eight);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, std::errc::not_supported);
  EXPECT_THAT(read.error().text, HasSubstr("Linux 4.16"));
  EXPECT_EQ(device.write(GBA_REGION_CONTROL, 0x58, eight).error().code, std::errc::not_supported);
  EXPECT_TRUE(device.read(GBA_REGION_CONTROL, 0x58, std::span(eight).first(4)));
}

TEST_P(VfioDevice, RefusesAccessesOutsideARegion) {
  Backend& device = open();
  std::array<std::byte, 4> word{};
  EXPECT_EQ(device.read(GBA_REGION_CONFIG, GBA_CONFIG_SIZE - 2, word).error().code, std::errc::invalid_argument);
  EXPECT_EQ(device.write(GBA_REGION_CONFIG, UINT64_MAX - 1, word).error().code, std::errc::invalid_argument);
  EXPECT_EQ(device.read(1, 0, word).error().code, std::errc::invalid_argument);
  EXPECT_EQ(kernel_.count("pread") + kernel_.count("pwrite"), 0U);
}

TEST_P(VfioDevice, TreatsAShortTransferAsAFailure) {
  Backend& device = open();
  std::array<std::byte, 4> word{};
  EXPECT_CALL(system_, pread).WillOnce(testing::Return(2));
  EXPECT_CALL(system_, pwrite).WillOnce(testing::Return(0));
  EXPECT_EQ(device.read(GBA_REGION_CONFIG, 0, word).error().code, std::errc::io_error);
  const auto written = device.write(GBA_REGION_CONFIG, 0, word);
  EXPECT_EQ(written.error().text,
            "gba: 0000:3b:00.0: cannot write 4 bytes at 0x0 of region 7: pwrite: input/output error");
}

TEST_P(VfioDevice, RaisesInterrupts) {
  Backend& device = open();
  EXPECT_EQ(device.irq_count(GBA_IRQ_MSIX).value(), GBA_MSIX_VECTORS);
  const base::UniqueFd three(::eventfd(0, EFD_NONBLOCK));
  const base::UniqueFd last(::eventfd(0, EFD_NONBLOCK));
  ASSERT_TRUE(device.arm_irq(GBA_IRQ_MSIX, 3, three.get()));
  // Higher than the first: the first arm_irq() must have enabled all vectors, because a kernel before 6.5 adds none.
  ASSERT_TRUE(device.arm_irq(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR, last.get()));
  kernel_.fire(GBA_IRQ_MSIX, 3);
  kernel_.fire(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR);
  eventfd_t value = 0;
  EXPECT_EQ(::eventfd_read(three.get(), &value), 0);
  EXPECT_EQ(::eventfd_read(last.get(), &value), 0);
  ASSERT_TRUE(device.disarm_irq(GBA_IRQ_MSIX, 3));
  kernel_.fire(GBA_IRQ_MSIX, 3);
  kernel_.fire(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR);
  EXPECT_NE(::eventfd_read(three.get(), &value), 0);
  EXPECT_EQ(::eventfd_read(last.get(), &value), 0);
}

TEST_P(VfioDevice, RefusesVectorsThatDoNotExist) {
  Backend& device = open();
  EXPECT_EQ(device.arm_irq(GBA_IRQ_MSIX, GBA_MSIX_VECTORS, 0).error().code, std::errc::invalid_argument);
  EXPECT_EQ(device.arm_irq(9, 0, 0).error().code, std::errc::invalid_argument);
  EXPECT_TRUE(device.disarm_irq(GBA_IRQ_MSIX, 0)) << "none was ever armed";
}

TEST_P(VfioDevice, ReportsHowManyVectorsTheMachineHasLeft) {
  kernel_.vectors_to_be_had = 7;
  const auto armed = open().arm_irq(GBA_IRQ_MSIX, 0, 0);
  ASSERT_FALSE(armed);
  EXPECT_EQ(armed.error().code, std::errc::no_space_on_device);
  EXPECT_THAT(armed.error().text, HasSubstr("7 vectors for it, 33 are needed"));
}

TEST_P(VfioDevice, TriesToArmAllVectorsAgainAfterAFailure) {
  Backend& device = open();
  kernel_.vectors_to_be_had = 7;
  EXPECT_FALSE(device.arm_irq(GBA_IRQ_MSIX, 0, 0));
  kernel_.vectors_to_be_had = 100;
  EXPECT_TRUE(device.arm_irq(GBA_IRQ_MSIX, 0, 0));
  EXPECT_TRUE(device.arm_irq(GBA_IRQ_MSIX, 32, 0));
}

TEST_P(VfioDevice, ResetsIfTheFunctionSupportsIt) {
  EXPECT_TRUE(open().reset());
  backend_.reset();
  kernel_.device_flags = VFIO_DEVICE_FLAGS_PCI;
  EXPECT_EQ(open().reset().error().code, std::errc::operation_not_supported);
  EXPECT_EQ(kernel_.count("VFIO_DEVICE_RESET"), 1U);
}

TEST_P(VfioDevice, RefusesADeviceThatIsNotAPciFunction) {
  kernel_.device_flags = VFIO_DEVICE_FLAGS_PLATFORM;
  EXPECT_EQ(GetParam().open(system_, no_sysfs(), GetParam().nodes).error().code, std::errc::no_such_device);
  EXPECT_EQ(kernel_.left_over(), "");
}

TEST_P(VfioDevice, IsLostWhenTheKernelWantsItBack) {
  Backend& device = open();
  EXPECT_FALSE(device.check_lost());
  kernel_.fire(GBA_IRQ_REQ, 0);
  EXPECT_TRUE(device.check_lost());
  EXPECT_EQ(device.loss(), Loss::kWanted);
}

TEST_P(VfioDevice, GivesTheDeviceBackWhenItIsLost) {
  Backend& device = open();
  const BarMapping doorbells = *BarMapping::make(device, GBA_REGION_DOORBELLS, GBA_BAR2_SIZE);
  const auto word = MmioRegion(doorbells.bytes()).word<std::uint64_t>(0);
  word.store(77);
  ASSERT_TRUE(kernel_.device_is_open());
  std::uint64_t seen_last = 0;
  device.set_farewell([&] { seen_last = device.lost() ? 0 : word.load(); });
  kernel_.fire(GBA_IRQ_REQ, 0);
  ASSERT_TRUE(device.check_lost());
  EXPECT_EQ(seen_last, 77U) << "the device still works during the farewell";
  EXPECT_FALSE(kernel_.device_is_open());
  EXPECT_FALSE(kernel_.is_open(kGroupNodes.device)) << "no process could open it again";
  EXPECT_EQ(word.load(), 0U) << "ordinary memory replaces it";
  word.store(78);
}

TEST_P(VfioDevice, GivesADeviceBackThatASignalHandlerMarkedAsLost) {
  Backend& device = open();
  device.mark_lost(Loss::kUnmapped);
  EXPECT_TRUE(kernel_.device_is_open());
  kernel_.fire(GBA_IRQ_REQ, 0);
  EXPECT_TRUE(device.check_lost());
  EXPECT_FALSE(kernel_.device_is_open());
  EXPECT_EQ(device.loss(), Loss::kUnmapped) << "the first reason is kept";
}

TEST_P(VfioDevice, LeavesTheDeviceToTheParentAfterAFork) {
  Backend& device = open();
  device.mark_forked();
  EXPECT_TRUE(device.check_lost());
  device.declare_lost(Loss::kRemoved);
  EXPECT_TRUE(kernel_.device_is_open());
  EXPECT_EQ(device.loss(), Loss::kForked);
  pollfd event = device.loss_event();
  EXPECT_EQ(::poll(&event, 1, 0), 0) << "the parent must not see a loss";
}

/// Descriptors that a program started by this process would inherit.
std::set<std::string> inheritable() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) {
      found.insert(entry.path().filename());
    }
  }
  return found;
}

TEST_P(VfioDevice, LeavesNoInheritableDescriptorAfterALoss) {
  const auto before = inheritable();
  open().declare_lost(Loss::kRemoved);
  EXPECT_EQ(inheritable(), before);
}

TEST_P(VfioDevice, IsLostByAPciError) {
  Backend& device = open();
  device.set_farewell([] { FAIL() << "the device does not work"; });
  kernel_.fire(GBA_IRQ_ERR, 0);
  EXPECT_TRUE(device.check_lost());
  EXPECT_EQ(device.loss(), Loss::kPciError);
}

TEST_P(VfioDevice, TellsWaitersThatItIsLost) {
  Backend& device = open();
  device.declare_lost(Loss::kSilent);
  pollfd event = device.loss_event();
  EXPECT_EQ(::poll(&event, 1, 0), 1);
  EXPECT_EQ(device.loss(), Loss::kSilent);
}

TEST_P(VfioDevice, WorksWithoutErrorInterrupts) {
  kernel_.irqs.erase(GBA_IRQ_ERR);
  kernel_.irqs.erase(GBA_IRQ_REQ);
  Backend& device = open();
  EXPECT_EQ(device.irq_count(GBA_IRQ_ERR).value(), 0U);
  EXPECT_FALSE(device.check_lost());
}

TEST_P(VfioDevice, FailsEveryCallOnceItIsLost) {
  Backend& device = open();
  const base::Mapping mapping = *device.map(GBA_REGION_DOORBELLS);
  const std::span<std::byte> memory = mapping.bytes().first(4096);
  ASSERT_TRUE(device.dma_map({.fd = -1, .memory = memory}, 4096));
  device.declare_lost(Loss::kPciError);
  constexpr auto kLost = std::errc{EREMOTEIO};
  std::array<std::byte, 4> word{};
  EXPECT_EQ(device.region_info(0).error().code, kLost);
  EXPECT_EQ(device.read(7, 0, word).error().code, kLost);
  EXPECT_EQ(device.write(7, 0, word).error().code, kLost);
  EXPECT_EQ(device.map(2).error().code, kLost);
  EXPECT_EQ(device.irq_count(2).error().code, kLost);
  EXPECT_EQ(device.arm_irq(2, 0, 0).error().code, kLost);
  EXPECT_EQ(device.disarm_irq(2, 0).error().code, kLost);
  EXPECT_EQ(device.dma_limits().error().code, kLost);
  EXPECT_EQ(device.dma_map({.fd = -1, .memory = memory}, 8192).error().code, kLost);
  EXPECT_EQ(device.reset().error().code, kLost);
  EXPECT_TRUE(device.dma_unmap(4096, 4096)) << "the memory belongs to the caller again";
  EXPECT_TRUE(kernel_.dma.empty());
}

TEST_P(VfioDevice, IsLostWhenTheKernelReportsNoDevice) {
  Backend& device = open();
  EXPECT_CALL(system_, pread).WillOnce(SetErrnoAndReturn(ENODEV, -1));
  std::array<std::byte, 4> word{};
  EXPECT_EQ(device.read(7, 0, word).error().code, std::errc::no_such_device);
  EXPECT_TRUE(device.lost());
}

TEST_P(VfioDevice, NamesTheLimitThatKeepsMemoryFromBeingPinned) {
  kernel_.memory_lock = 6000;
  Backend& device = open();
  const base::Mapping mapping = *device.map(GBA_REGION_DOORBELLS);
  const DmaBuffer page{.fd = -1, .memory = mapping.bytes().first(4096)};
  ASSERT_TRUE(device.dma_map(page, 0x10000));
  const std::size_t calls = kernel_.log.size();
  const auto second = device.dma_map(page, 0x20000);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, std::errc::not_enough_memory);
  EXPECT_THAT(second.error().text,
              HasSubstr("RLIMIT_MEMLOCK) is 6000 bytes, the device needs 4096 in addition to the 4096"));
  EXPECT_THAT(second.error().text, HasSubstr("ulimit -l"));
  EXPECT_EQ(kernel_.log.size(), calls + 1) << "the driver checks before it asks the kernel";
  ASSERT_TRUE(device.dma_unmap(0x10000, 4096));
  EXPECT_TRUE(device.dma_map(page, 0x20000)) << "the limit allows it again";
}

TEST_P(VfioDevice, NeedsNoLimitWithTheCapability) {
  kernel_.memory_lock = 0;
  kernel_.capabilities = 1U << 14;  // CAP_IPC_LOCK
  Backend& device = open();
  const base::Mapping mapping = *device.map(GBA_REGION_DOORBELLS);
  EXPECT_TRUE(device.dma_map({.fd = -1, .memory = mapping.bytes()}, 0x10000));
}

TEST_P(VfioDevice, NamesTheLimitWhenTheKernelRefusesToPinToo) {
  kernel_.memory_lock = 8192;
  Backend& device = open();
  const base::Mapping mapping = *device.map(GBA_REGION_DOORBELLS);
  const DmaBuffer page{.fd = -1, .memory = mapping.bytes().first(4096)};
  kernel_.failing_call = kernel_.calls + 1;  // after getrlimit
  kernel_.failure = ENOMEM;
  const auto mapped = device.dma_map(page, 0x10000);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, std::errc::not_enough_memory);
  EXPECT_THAT(mapped.error().text, HasSubstr("is 8192 bytes"));
  // Type 1 counts pinned memory per process, iommufd per user.
  EXPECT_EQ(mapped.error().text.find("the user's other processes") != std::string::npos, device.name() == "vfio-cdev");
  EXPECT_TRUE(device.dma_map(page, 0x10000) && device.dma_map(page, 0x20000)) << "the failed one does not count";
}

TEST_P(VfioDevice, LeavesTheParentsMappingsAloneInAForkedChild) {
  Backend& device = open();
  const base::Mapping mapping = *device.map(GBA_REGION_DOORBELLS);
  ASSERT_TRUE(device.dma_map({.fd = -1, .memory = mapping.bytes().first(4096)}, 0x10000));
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(device.dma_unmap(0x10000, 4096) || kernel_.dma.empty() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(device.dma_unmap(0x10000, 4096));
}

// A child that outlived its parent would otherwise keep the device from all other processes.
TEST_P(VfioDevice, LeavesNoDescriptorOfTheDeviceToAForkedChild) {
  open();
  const std::vector<int> descriptors = kernel_.holding_device();
  ASSERT_GE(descriptors.size(), 2U) << "the IOMMU and the device, and a group";
  for (const int descriptor : descriptors) {
    ASSERT_EQ(::eventfd_write(descriptor, 1), 0);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    int kept = 0;
    for (const int descriptor : descriptors) {
      eventfd_t value = 0;
      kept += ::fcntl(descriptor, F_GETFD) != FD_CLOEXEC || ::eventfd_read(descriptor, &value) == 0 ? 1 : 0;
    }
    ::_exit(kept);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status) << " descriptors are not replaced";
  for (const int descriptor : descriptors) {
    eventfd_t value = 0;
    EXPECT_EQ(::eventfd_read(descriptor, &value), 0) << "the parent keeps its own";
  }
}

TEST_P(VfioDevice, ReportsAnIncompleteUnmap) {
  EXPECT_EQ(open().dma_unmap(0x10000, 4096).error().code, std::errc::invalid_argument);
}

TEST_P(VfioDevice, AsksForAsManyRangesAsThereAre) {
  kernel_.ranges.clear();
  for (std::uint64_t i = 0; i < 20; ++i) {
    kernel_.ranges.push_back({.first = i << 20, .last = (i << 20) + 0xffff});
  }
  EXPECT_EQ(open().dma_limits()->ranges, kernel_.ranges);
}

TEST_P(VfioDevice, ReportsWhatTheIommuCanMap) {
  const auto limits = open().dma_limits();
  EXPECT_EQ(limits->ranges, kernel_.ranges);
  EXPECT_EQ(limits->page, 4096U);
}

TEST_P(VfioDevice, SharesItsIommuGroupWithAnotherDeviceOfTheProcess) {
  const Way& way = GetParam();
  open();
  EXPECT_EQ(way.open(system_, no_sysfs(), way.second).error().code, std::errc::device_or_resource_busy)
      << "the kernel accepts one opener and one address space";
  backend_.reset();

  VfioContexts contexts;
  auto first = way.open_in(system_, no_sysfs(), way.nodes, contexts);
  auto second = way.open_in(system_, no_sysfs(), way.second, contexts);
  ASSERT_TRUE(first && second) << (first ? second : first).error().text;
  const base::Mapping mapping = *(*first)->map(GBA_REGION_DOORBELLS);
  const DmaBuffer page{.fd = -1, .memory = mapping.bytes().first(4096)};
  const auto iovas = (*first)->iova_space(*(*first)->dma_limits()).value();
  EXPECT_EQ((*second)->iova_space(*(*second)->dma_limits()).value(), iovas) << "one shared address space";
  const std::uint64_t one = iovas->allocate(4096).value();
  const std::uint64_t two = iovas->allocate(4096).value();
  ASSERT_TRUE((*first)->dma_map(page, one));
  ASSERT_TRUE((*second)->dma_map(page, two));

  (*first)->declare_lost(Loss::kPciError);
  EXPECT_TRUE((*second)->dma_unmap(two, 4096)) << "the other device still works";
  EXPECT_TRUE((*first)->dma_unmap(one, 4096));
  auto again = way.open_in(system_, no_sysfs(), way.nodes, contexts);
  ASSERT_TRUE(again) << again.error().text;
  (*again)->declare_lost(Loss::kPciError);
  (*second)->declare_lost(Loss::kPciError);
  EXPECT_FALSE(kernel_.is_open(kGroupNodes.device)) << "another process can open it";
  EXPECT_TRUE(way.open_in(system_, no_sysfs(), way.second, contexts)) << "and so can this one";
  first->reset();
  second->reset();
  again->reset();
  EXPECT_EQ(kernel_.left_over(), "");
}

}  // namespace
}  // namespace gba::test
