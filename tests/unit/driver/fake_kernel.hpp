// SPDX-License-Identifier: Apache-2.0
// A fake kernel behind SystemCalls, with two GBAs of one IOMMU group bound to vfio-pci. It keeps track of what is open
// and mapped, and is as strict about interrupt vectors as Linux 6.1.
#pragma once

#include <gmock/gmock.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/backend.hpp"
#include "driver/system_calls.hpp"
#include "driver/vfio_device_fd.hpp"
#include "driver/vfio_kernel.hpp"
#include "uapi/gba_device.h"

namespace gba::test {

inline const VfioNodes kGroupNodes{.device = "/dev/vfio/12", .iommu = "/dev/vfio/vfio", .address = "0000:3b:00.0"};
inline const VfioNodes kCdevNodes{
    .device = "/dev/vfio/devices/vfio0", .iommu = "/dev/iommu", .address = "0000:3b:00.0"};
// Another function in the same IOMMU group.
inline const VfioNodes kSecondGroupNodes{
    .device = "/dev/vfio/12", .iommu = "/dev/vfio/vfio", .address = "0000:3b:00.1"};
inline const VfioNodes kSecondCdevNodes{
    .device = "/dev/vfio/devices/vfio1", .iommu = "/dev/iommu", .address = "0000:3b:00.1"};

class FakeKernel final : public SystemCalls {
 public:
  struct Region {
    std::uint64_t size = 0;
    bool mappable = false;
    std::vector<vfio_region_sparse_mmap_area> areas;  // if any: the sparse mmap capability
  };

  FakeKernel();
  ~FakeKernel() override;

  int open(const char* path, int flags) override;
  int close(int fd) override;
  int dup3(int from, int to, int flags) override;
  int ioctl(int fd, unsigned long request, void* argument) override;
  ssize_t pread(int fd, void* data, std::size_t size, off_t offset) override;
  ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset) override;
  void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) override;
  int eventfd(unsigned value, int flags) override;
  int epoll_create1(int flags) override;
  int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) override;
  int getrlimit(int resource, rlimit* limit) override;
  unsigned long long effective_capabilities() override { return capabilities; }

  /// Raises an interrupt.
  void fire(std::uint32_t index, std::uint32_t vector);
  /// What is still open or mapped, or was closed twice; "" if nothing.
  [[nodiscard]] std::string left_over() const;
  /// Whether any descriptor of a device is open.
  [[nodiscard]] bool device_is_open() const;
  [[nodiscard]] bool is_open(const std::string& path) const;
  /// The descriptors that keep the device for the process: of its nodes, and its own.
  [[nodiscard]] std::vector<int> holding_device() const;
  [[nodiscard]] std::size_t count(const std::string& call) const;
  [[nodiscard]] std::string bytes(std::uint32_t region, std::uint64_t offset, std::size_t size);

  // Properties of the machine.
  int api_version = 0;
  std::set<std::uintptr_t> extensions{VFIO_TYPE1v2_IOMMU};
  std::uint32_t group_flags = VFIO_GROUP_FLAGS_VIABLE;
  std::uint32_t device_flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
  std::map<std::uint32_t, Region> regions;
  std::map<std::uint32_t, std::uint32_t> irqs;  // index -> vectors; EINVAL for other indices
  int vectors_to_be_had = 1024;
  VfToken vf_token;              // if any: the device is a virtual function that requires it
  bool cdev_knows_token = true;  // as Linux 6.18 and later
  std::vector<IovaRange> ranges;
  std::uint64_t page_sizes = 0x40201000;
  bool iommu_has_capabilities = true;
  rlim_t memory_lock = RLIM_INFINITY;
  unsigned long long capabilities = 0;

  // The call that fails, counted from 0, and its errno.
  std::optional<unsigned> failing_call;
  int failure = EIO;

  // A record of what the driver did.
  unsigned calls = 0;
  std::string failed_call;  // the name of the call that failed
  std::vector<std::string> log;
  std::map<std::uint64_t, std::uint64_t> dma;  // IOVA -> size

 private:
  /// The object of a descriptor: a path, or "device", "eventfd", "epoll".
  using File = std::string;

  /// Counts the call. False if it is the call that is set to fail.
  bool enter(const std::string& call);
  int give(const File& file);
  int fail_with(int error);
  int container_ioctl(unsigned long request, void* argument);
  int group_ioctl(unsigned long request, void* argument);
  int attach(std::uint32_t space);
  int device_of_group(const std::string& name);
  int device_ioctl(unsigned long request, void* argument);
  int iommufd_ioctl(unsigned long request, void* argument);
  int region_info(void* argument);
  int set_irqs(const void* argument);
  int iommu_info(void* argument) const;
  int iova_ranges(void* argument);
  int map_dma(std::uint64_t iova, std::uint64_t size);
  int unmap_dma(std::uint64_t iova, std::uint64_t& size);

  std::map<int, File> files_;
  std::string wrong_;  // what was closed without being open
  bool attached_ = false;
  std::uint32_t spaces_ = 0;  // address spaces of iommufd
  std::uint32_t attached_to_ = 0;
  std::map<std::uint32_t, std::vector<int>> armed_;  // index -> eventfd of each vector
  std::map<std::uint32_t, std::vector<std::byte>> memory_;
};

/// Passes all calls on to the fake kernel; a test can set GoogleMock expectations on top.
class MockSystemCalls : public SystemCalls {
 public:
  explicit MockSystemCalls(FakeKernel& kernel);

  MOCK_METHOD(int, open, (const char*, int), (override));
  MOCK_METHOD(int, close, (int), (override));
  MOCK_METHOD(int, dup3, (int, int, int), (override));
  MOCK_METHOD(int, ioctl, (int, unsigned long, void*), (override));
  MOCK_METHOD(ssize_t, pread, (int, void*, std::size_t, off_t), (override));
  MOCK_METHOD(ssize_t, pwrite, (int, const void*, std::size_t, off_t), (override));
  MOCK_METHOD(void*, mmap, (void*, std::size_t, int, int, int, off_t), (override));
  MOCK_METHOD(int, eventfd, (unsigned, int), (override));
  MOCK_METHOD(int, epoll_create1, (int), (override));
  MOCK_METHOD(int, epoll_ctl, (int, int, int, epoll_event*), (override));
  MOCK_METHOD(int, getrlimit, (int, rlimit*), (override));
  MOCK_METHOD(unsigned long long, effective_capabilities, (), (override));
};

/// The name of an ioctl, such as "VFIO_SET_IOMMU".
std::string ioctl_name(unsigned long request);

}  // namespace gba::test
