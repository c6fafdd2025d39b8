/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vfio-user wire format (QEMU docs/interop/vfio-user.rst): integers in host order, structs without hidden padding.
 * Only what travels; what each side does with it is its own business. C11 and C++.
 */
#ifndef GBA_UAPI_VFIO_USER_H
#define GBA_UAPI_VFIO_USER_H

#include <assert.h>
#include <stdint.h>

#define VFIO_USER_MAJOR 0u
#define VFIO_USER_MINOR 0u

#define VFIO_USER_MAX_XFER 0x100000u                       /* default max_data_xfer_size */
#define VFIO_USER_MAX_MESSAGE (VFIO_USER_MAX_XFER + 0x20u) /* what a peer must accept */
#define VFIO_USER_MAX_VERSION_REPLY 214u                   /* QEMU reads no longer one */

enum vfio_user_command {
  VFIO_USER_VERSION = 1,
  VFIO_USER_DMA_MAP = 2,
  VFIO_USER_DMA_UNMAP = 3,
  VFIO_USER_DEVICE_GET_INFO = 4,
  VFIO_USER_DEVICE_GET_REGION_INFO = 5,
  VFIO_USER_DEVICE_GET_REGION_IO_FDS = 6,
  VFIO_USER_DEVICE_GET_IRQ_INFO = 7,
  VFIO_USER_DEVICE_SET_IRQS = 8,
  VFIO_USER_REGION_READ = 9,
  VFIO_USER_REGION_WRITE = 10,
  VFIO_USER_DMA_READ = 11,
  VFIO_USER_DMA_WRITE = 12,
  VFIO_USER_DEVICE_RESET = 13,
  VFIO_USER_REGION_WRITE_MULTI = 15,
  VFIO_USER_DEVICE_FEATURE = 16,
  VFIO_USER_MIG_DATA_READ = 17,
  VFIO_USER_MIG_DATA_WRITE = 18
};

/* ---- Header of every message ---- */
#define VFIO_USER_TYPE_MASK 0xfu
#define VFIO_USER_TYPE_COMMAND 0x0u
#define VFIO_USER_TYPE_REPLY 0x1u
#define VFIO_USER_NO_REPLY 0x10u
#define VFIO_USER_ERROR 0x20u

struct vfio_user_header {
  uint16_t msg_id;
  uint16_t command;
  uint32_t msg_size; /* header included */
  uint32_t flags;
  uint32_t error; /* errno, with VFIO_USER_ERROR */
};

/* Followed by NUL-terminated JSON, the NUL counted. */
struct vfio_user_version {
  uint16_t major;
  uint16_t minor;
};

/* ---- DMA ---- */
#define VFIO_USER_DMA_READABLE 0x1u
#define VFIO_USER_DMA_WRITABLE 0x2u
#define VFIO_USER_DMA_UNMAP_BITMAP 0x1u
#define VFIO_USER_DMA_UNMAP_ALL 0x2u

struct vfio_user_dma_map {
  uint32_t argsz;
  uint32_t flags;
  uint64_t offset; /* in the file that comes with the message */
  uint64_t address;
  uint64_t size;
};

struct vfio_user_dma_unmap {
  uint32_t argsz;
  uint32_t flags;
  uint64_t address;
  uint64_t size;
};

/* DMA_READ, DMA_WRITE: followed by the data */
struct vfio_user_dma_access {
  uint64_t address;
  uint64_t count;
};

/* ---- Device ---- */
#define VFIO_USER_DEVICE_RESET_SUPPORTED 0x1u
#define VFIO_USER_DEVICE_PCI 0x2u

struct vfio_user_device_info {
  uint32_t argsz;
  uint32_t flags;
  uint32_t num_regions;
  uint32_t num_irqs;
};

#define VFIO_USER_REGION_READABLE 0x1u
#define VFIO_USER_REGION_WRITABLE 0x2u
#define VFIO_USER_REGION_MMAP 0x4u
#define VFIO_USER_REGION_CAPS 0x8u

struct vfio_user_region_info {
  uint32_t argsz;
  uint32_t flags;
  uint32_t index;
  uint32_t cap_offset;
  uint64_t size;
  uint64_t offset; /* of the region in the file that comes with the reply */
};

#define VFIO_USER_CAP_SPARSE_MMAP 1u
#define VFIO_USER_CAP_REGION_TYPE 2u

struct vfio_user_cap_header {
  uint16_t id;
  uint16_t version;
  uint32_t next; /* from the start of the region info; 0: last */
};

/* Of a region that is not one of PCI's: what it is. */
struct vfio_user_region_type {
  struct vfio_user_cap_header header;
  uint32_t type;
  uint32_t subtype;
};

/* ---- REGION_IO_FDS: file descriptors that replace messages for some accesses ---- */
#define VFIO_USER_IO_FD_TYPE_IOEVENTFD 0u
#define VFIO_USER_IO_FD_TYPE_IOREGIONFD 1u
#define VFIO_USER_IO_FD_DATAMATCH 0x1u

struct vfio_user_region_io_fds {
  uint32_t argsz;
  uint32_t flags;
  uint32_t index;
  uint32_t count; /* of the entries that follow in a reply */
};

struct vfio_user_ioeventfd {
  uint64_t offset;
  uint64_t size;
  uint32_t fd_index;
  uint32_t type;
  uint32_t flags;
  uint32_t padding;
  uint64_t datamatch;
};

/* ---- Interrupts ---- */
#define VFIO_USER_IRQ_INFO_EVENTFD 0x1u
#define VFIO_USER_IRQ_INFO_MASKABLE 0x2u
#define VFIO_USER_IRQ_INFO_AUTOMASKED 0x4u
#define VFIO_USER_IRQ_INFO_NORESIZE 0x8u

struct vfio_user_irq_info {
  uint32_t argsz;
  uint32_t flags;
  uint32_t index;
  uint32_t count;
};

#define VFIO_USER_IRQ_DATA_NONE 0x1u
#define VFIO_USER_IRQ_DATA_BOOL 0x2u
#define VFIO_USER_IRQ_DATA_EVENTFD 0x4u
#define VFIO_USER_IRQ_ACTION_MASK 0x8u
#define VFIO_USER_IRQ_ACTION_UNMASK 0x10u
#define VFIO_USER_IRQ_ACTION_TRIGGER 0x20u

/* Followed by bools, one byte each, with DATA_BOOL; file descriptors come beside the message. */
struct vfio_user_irq_set {
  uint32_t argsz;
  uint32_t flags;
  uint32_t index;
  uint32_t start;
  uint32_t count;
};

/* ---- Regions: followed by the data in a write command and a read reply ---- */
struct vfio_user_region_access {
  uint64_t offset;
  uint32_t region;
  uint32_t count;
};

#define VFIO_USER_WRITE_MULTI_DATA 8u

struct vfio_user_write_multi_entry {
  uint64_t offset;
  uint32_t region;
  uint32_t count;
  uint8_t data[VFIO_USER_WRITE_MULTI_DATA];
};

static_assert(sizeof(struct vfio_user_header) == 16, "wire size");
static_assert(sizeof(struct vfio_user_version) == 4, "wire size");
static_assert(sizeof(struct vfio_user_dma_map) == 32, "wire size");
static_assert(sizeof(struct vfio_user_dma_unmap) == 24, "wire size");
static_assert(sizeof(struct vfio_user_dma_access) == 16, "wire size");
static_assert(sizeof(struct vfio_user_device_info) == 16, "wire size");
static_assert(sizeof(struct vfio_user_region_info) == 32, "wire size");
static_assert(sizeof(struct vfio_user_cap_header) == 8, "wire size");
static_assert(sizeof(struct vfio_user_region_type) == 16, "wire size");
static_assert(sizeof(struct vfio_user_region_io_fds) == 16, "wire size");
static_assert(sizeof(struct vfio_user_ioeventfd) == 40, "wire size");
static_assert(sizeof(struct vfio_user_irq_info) == 16, "wire size");
static_assert(sizeof(struct vfio_user_irq_set) == 20, "wire size");
static_assert(sizeof(struct vfio_user_region_access) == 16, "wire size");
static_assert(sizeof(struct vfio_user_write_multi_entry) == 24, "wire size");

#endif
