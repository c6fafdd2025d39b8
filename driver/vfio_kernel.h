/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's VFIO and iommufd interface: its own headers, and where they are older than Linux 6.6 what they lack,
 * under the kernel's names and with its values. Private to the backends.
 */
#ifndef GBA_DRIVER_VFIO_KERNEL_H
#define GBA_DRIVER_VFIO_KERNEL_H

#include <linux/vfio.h>

#ifndef VFIO_DEVICE_BIND_IOMMUFD
struct vfio_device_bind_iommufd {
  __u32 argsz;
  __u32 flags;
  __s32 iommufd;
  __u32 out_devid;
};
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

#endif
