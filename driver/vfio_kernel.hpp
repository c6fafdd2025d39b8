// SPDX-License-Identifier: Apache-2.0
// The kernel's VFIO and iommufd interface, private to the backends: its own headers, what headers older than Linux 6.6
// lack (under the kernel's names and with its values), and the INFO calls.
#pragma once

#include <linux/vfio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "driver/system_calls.hpp"

#ifndef VFIO_DEVICE_BIND_IOMMUFD
#define VFIO_DEVICE_BIND_IOMMUFD _IO(VFIO_TYPE, VFIO_BASE + 18)
#endif

#ifndef VFIO_DEVICE_ATTACH_IOMMUFD_PT
struct vfio_device_attach_iommufd_pt {
  __u32 argsz;
  __u32 flags;
  __u32 pt_id;
};
#define VFIO_DEVICE_ATTACH_IOMMUFD_PT _IO(VFIO_TYPE, VFIO_BASE + 19)
#endif

#if __has_include(<linux/iommufd.h>)
#include <linux/iommufd.h>
#else
#define IOMMUFD_TYPE (';')

struct iommu_ioas_alloc {
  __u32 size;
  __u32 flags;
  __u32 out_ioas_id;
};
#define IOMMU_IOAS_ALLOC _IO(IOMMUFD_TYPE, 0x81)

struct iommu_iova_range {
  __u64 start;
  __u64 last;
};
struct iommu_ioas_iova_ranges {
  __u32 size;
  __u32 ioas_id;
  __u32 num_iovas;
  __u32 reserved;
  __u64 allowed_iovas;
  __u64 out_iova_alignment;
};
#define IOMMU_IOAS_IOVA_RANGES _IO(IOMMUFD_TYPE, 0x84)

enum { IOMMU_IOAS_MAP_FIXED_IOVA = 1, IOMMU_IOAS_MAP_WRITEABLE = 2, IOMMU_IOAS_MAP_READABLE = 4 };
struct iommu_ioas_map {
  __u32 size;
  __u32 flags;
  __u32 ioas_id;
  __u32 reserved;
  __u64 user_va;
  __u64 length;
  __u64 iova;
};
#define IOMMU_IOAS_MAP _IO(IOMMUFD_TYPE, 0x85)

struct iommu_ioas_unmap {
  __u32 size;
  __u32 ioas_id;
  __u64 iova;
  __u64 length;
};
#define IOMMU_IOAS_UNMAP _IO(IOMMUFD_TYPE, 0x86)
#endif

namespace gba {

/// struct vfio_device_bind_iommufd, which has a VF token since Linux 6.18.
struct VfioBind {
  __u32 argsz;
  __u32 flags;
  __s32 iommufd;
  __u32 out_devid;
  __u64 token;  // the address of 16 bytes, with kVfioBindToken
};
constexpr __u32 kVfioBindToken = 1;  // VFIO_DEVICE_BIND_FLAG_TOKEN

/// What the kernel answered: the struct and all that comes behind it.
class VfioInfo {
 public:
  explicit VfioInfo(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  [[nodiscard]] T head() const {
    return *at<T>(bytes_, 0);
  }
  /// The body of capability `id`, from its header on, in the chain that begins at `offset`; empty if there is none.
  [[nodiscard]] std::span<const std::byte> capability(std::uint32_t offset, std::uint16_t id) const;

  /// The struct at `offset` of `bytes`, if it lies within them.
  template <typename T>
  static std::optional<T> at(std::span<const std::byte> bytes, std::size_t offset) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
      return std::nullopt;
    }
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Makes the call with as much room as the kernel asks for. Nothing: it failed, and errno says how. REQUIRES: `asked`
/// has argsz as its first member.
std::optional<VfioInfo> vfio_info(SystemCalls& system, int fd, unsigned long request, std::span<const std::byte> asked);

}  // namespace gba
